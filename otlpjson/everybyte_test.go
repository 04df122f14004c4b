package otlpjson

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// everyByte yields the positions in [from, to), or every eleventh with -short.
func everyByte(from, to int) iter.Seq[int] {
	return func(yield func(int) bool) {
		step := 1
		if testing.Short() {
			step = 11
		}
		for i := from; i < to && yield(i); i += step {
		}
	}
}

// eachByte yields positions in [from, to) for the i-th kind of damage: every third one, so that
// each byte meets a third of the kinds, or all if SGTRACE_THOROUGH is set.
func eachByte(i, from, to int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := range everyByte(from, to) {
			if (thorough() || (at+i)%3 == 0) && !yield(at) {
				return
			}
		}
	}
}

func thorough() bool { return os.Getenv("SGTRACE_THOROUGH") != "" }

// flips returns which bits of each byte a test flips: one, which the test rotates from byte to
// byte, or all if SGTRACE_THOROUGH is set.
func flips() []int {
	if !thorough() {
		return []int{0}
	}
	return []int{0, 1, 2, 3, 4, 5, 6, 7}
}

// damageDocs are the documents that are damaged here: spans a to g.
func damageDocs() []string {
	return []string{
		doc(span("a"), rich("b")),
		`{"resourceSpans":[` + resourceSpans("p1", span("c", `"links":[{"traceId":"00000000000000005eed5eed5eed5eed","spanId":"00000000000000bb"}]`)) + `,` +
			resourceSpans("p2", rich("d"), span("e")) + `]}`,
		doc(span("f"), span("g")),
	}
}

// spanEnds returns the offsets in data at which spans end.
func spanEnds(t testing.TB, data string) (ends []int) {
	t.Helper()
	for at := 0; ; {
		i := strings.Index(data[at:], `"status":{}}`)
		if i < 0 {
			return ends
		}
		at += i + len(`"status":{}}`)
		ends = append(ends, at)
	}
}

// An input is cut off at every byte. Everything complete before the cut is read, in any layout, and
// the loss is reported on its line; a cut between documents loses nothing.
func TestCutOffAtEveryByte(t *testing.T) {
	docs := damageDocs()
	for name, parts := range map[string][]string{ // text between the parts is no loss
		"lines":        {docs[0], "\n", docs[1], "\r\n\r\n", docs[2], "\n"},
		"concatenated": {docs[0], docs[1], docs[2]},
		"array":        {"[", docs[0], ",", docs[1], ",\n", docs[2], "]"},
		"marked":       {"\ufeff", docs[0], "\n", docs[1]},
	} {
		t.Run(name, func(t *testing.T) {
			data := strings.Join(parts, "")
			want, ends := read(t, data).inOrder(), spanEnds(t, data)
			inside := make([]bool, len(data)+1) // inside a document, or a byte order mark
			at := 0
			for _, p := range parts {
				for i := 1; i < len(p) && p[0] > ','; i++ {
					inside[at+i] = true
				}
				at += len(p)
			}
			for cut := range everyByte(0, len(data)+1) {
				complete := 0
				for complete < len(ends) && ends[complete] <= cut {
					complete++
				}
				got := readSmall(t, data[:cut])
				if d := diff(got.inOrder(), want[:complete]); d != "" {
					t.Errorf("cut at %d: %s", cut, d)
				}
				codes := ""
				if inside[cut] {
					codes = fmt.Sprintf("otlp-truncated@f1:%d", 1+strings.Count(data[:cut], "\n"))
				}
				if got.codes() != codes {
					t.Errorf("cut at %d, after %q: diagnostics %v, want %q", cut, data[max(0, cut-30):cut], got.diags, codes)
				}
			}
		})
	}
}

// A line is cut off at every byte because its writer was killed, and another writer continues after
// it: the documents of the second writer are read completely.
func TestCutOffLineBeforeGoodOnes(t *testing.T) {
	docs := damageDocs()
	bad, good := docs[1], docs[0]+"\n"+docs[2]
	want, ends := read(t, bad).inOrder(), spanEnds(t, bad)
	wantGood := read(t, good).inOrder()
	for _, between := range []string{"\n", "", "\r\n\r\n"} {
		for cut := range everyByte(1, len(bad)) {
			complete := 0
			for complete < len(ends) && ends[complete] <= cut {
				complete++
			}
			got := readSmall(t, bad[:cut]+between+good)
			if d := diff(got.inOrder(), slices.Concat(want[:complete], wantGood)); d != "" {
				t.Errorf("cut at %d before %q: %s", cut, between, d)
			}
			if len(got.diags) != 1 || got.diags[0].Count != 1 || !got.loss() || got.diags[0].Pos.Line != 1 {
				t.Errorf("cut at %d, after %q: diagnostics %v, want one in line 1", cut, bad[max(0, cut-30):cut], got.diags)
			}
		}
	}
}

// The beginning of a file is cut off at every byte, as by log rotation: spans that begin after the
// cut are read, and so are the documents after it.
func TestHeadCutOffAtEveryByte(t *testing.T) {
	docs := damageDocs()
	bad, good := docs[1], docs[2]
	var begins []int
	for _, name := range []string{"c", "d", "e"} {
		begins = append(begins, strings.Index(bad, span(name)[:80]))
	}
	for cut := range everyByte(1, len(bad)) {
		want := []string{}
		for i, begin := range begins {
			if begin >= cut {
				want = append(want, string('c'+rune(i)))
			}
		}
		want = append(want, "f", "g")
		got := readSmall(t, bad[cut:]+"\n"+good)
		// A span cut inside its first key may still be recognized.
		if names := strings.Fields(got.names()); !slices.Equal(names, want) && !slices.Equal(names[min(1, len(names)):], want) {
			t.Errorf("cut at %d, before %q: spans %s, want %s", cut, bad[cut:min(len(bad), cut+40)], names, want)
		}
		if cut < len(bad)-1 && !got.loss() {
			t.Errorf("cut at %d, before %q: not reported", cut, bad[cut:min(len(bad), cut+40)])
		}
	}
}

// Two processes write into one file, so that a document stands inside another, at every byte. The
// inner document is read completely, and the outer one loses at most one span.
func TestInterleavedWriters(t *testing.T) {
	docs := damageDocs()
	outer, inner := docs[1], docs[0]
	want, wantInner := read(t, outer).names(), read(t, inner).inOrder()
	for i := range everyByte(1, len(outer)) {
		got := readSmall(t, outer[:i]+inner+"\n"+outer[i:]+"\n"+docs[2])
		text := got.inOrder()
		for _, s := range wantInner {
			if !slices.Contains(text, s) {
				t.Errorf("at %d, after %q: %.100s is lost", i, outer[max(0, i-30):i], s)
			}
		}
		lost := 0
		for name := range strings.FieldsSeq(want) {
			if !slices.Contains(strings.Fields(got.names()), name) {
				lost++
			}
		}
		if lost > 1 || got.Len() > 7 || !strings.HasSuffix(got.names(), "f g") || !got.loss() {
			t.Errorf("at %d, after %q: spans %s, %v", i, outer[max(0, i-30):i], got.names(), got.diags)
		}
	}
}

// Every byte is damaged in many ways. Other documents are unaffected, no data is made up, and a
// missing span is reported.
func TestEveryByteDamaged(t *testing.T) {
	docs := damageDocs()
	data := strings.Join(docs, "\n") + "\n"
	want := read(t, data).inOrder()
	inDoc := []int{0, 0, 1, 1, 1, 2, 2}
	damages := map[string]func(i int) string{
		"deleted": func(i int) string { return data[:i] + data[i+1:] },
		"doubled": func(i int) string { return data[:i] + data[i:i+1] + data[i:] },
	}
	for _, with := range "\"{}[],\\\n\x00" {
		damages[fmt.Sprintf("replaced by %q", with)] = func(i int) string { return data[:i] + string(with) + data[i+1:] }
	}
	for _, bit := range flips() {
		damages[fmt.Sprintf("bit %d flipped", bit)] = func(i int) string {
			return data[:i] + string([]byte{data[i] ^ 1<<((i+bit)%8)}) + data[i+1:]
		}
	}
	for number, name := range slices.Sorted(maps.Keys(damages)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range eachByte(number, 0, len(data)) {
				hit := strings.Count(data[:i], "\n")
				got := readSmall(t, damages[name](i))
				text := got.inOrder()
				for s, d := range inDoc {
					if d != hit && !slices.Contains(text, want[s]) {
						t.Errorf("byte %d, %q: a span of another document is lost: %.100s; %v", i, data[max(0, i-10):min(len(data), i+10)], want[s], got.diags)
					}
				}
				if got.Len() > len(want) || got.Len() < len(want) && !got.loss() {
					t.Errorf("byte %d, %q: spans %s; %v", i, data[max(0, i-10):min(len(data), i+10)], got.names(), got.diags)
				}
			}
		})
	}
}

// A block of any size is missing anywhere in the middle, as after a crash: the other documents are
// read completely.
func TestLostBlock(t *testing.T) {
	docs := damageDocs()
	for _, size := range []int{40, 150, 512, 700} {
		for i := 0; i+size <= len(docs[1]); i += 3 {
			got := readSmall(t, docs[0]+"\n"+docs[1][:i]+docs[1][i+size:]+"\n"+docs[2])
			if names := got.names(); !strings.HasPrefix(names, "a b") || !strings.HasSuffix(names, "f g") || got.Len() > 7 {
				t.Errorf("%d bytes at %d: spans %s; %v", size, i, names, got.diags)
			}
		}
	}
}
