package otlpjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// frameDocs are the documents of the tests with frames: spans a to f.
func frameDocs() []string {
	return []string{doc(span("a"), rich("b")), doc(rich("c")), doc(span("d"), span("e"), span("f"))}
}

// framings are ways to frame documents, named by the detected encoding; the part after a comma is
// not detected.
func framings(t testing.TB) map[string]func(docs ...string) []string {
	messages := func(docs ...string) []string { return protoMessages(t, strings.Join(docs, "\n")) }
	return map[string]func(docs ...string) []string{
		"zstd frames":           packed,
		"zstd frames, protobuf": func(docs ...string) []string { return packed(messages(docs...)...) },
		"protobuf frames":       messages,
	}
}

func TestFrames(t *testing.T) {
	want := read(t, strings.Join(frameDocs(), "\n")).inOrder()
	for encoding, encode := range framings(t) {
		t.Run(encoding, func(t *testing.T) {
			data := frames(encode(frameDocs()...)...)
			got := read(t, data)
			if d := diff(got.inOrder(), want); d != "" {
				t.Error(d)
			}
			told, _, _ := strings.Cut(encoding, ",")
			if f := got.Files[0]; f.Encoding != told || f.Documents != 3 || f.Spans != 6 || f.Bytes != int64(len(data)) {
				t.Errorf("%+v", f)
			}
			if len(got.diags) > 0 {
				t.Errorf("diagnostics: %v", got.diags)
			}
		})
	}
}

// The order of fields in a message is up to the encoder; Go's newer OTLP encoders write them in
// reverse.
func TestProtoFieldsBackwards(t *testing.T) {
	var backwards func(v any) any
	backwards = func(v any) any {
		switch v := v.(type) {
		case object:
			out := object{}
			for _, m := range slices.Backward(v) {
				out = append(out, member{m.key, backwards(m.value)})
			}
			return out
		case []any:
			out := []any{}
			for _, e := range v {
				out = append(out, backwards(e))
			}
			return out
		}
		return v
	}
	data := doc(rich("a"), span("b"))
	trees, err := parseTrees([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, frames(string(protoDocument.encode(backwards(trees[0]).(object)))))
	if d := diff(got.inOrder(), read(t, data).inOrder()); d != "" || len(got.diags) > 0 {
		t.Errorf("%s %v", d, got.diags)
	}
}

// A message is cut off at every byte: everything complete before the cut is read, and the loss is
// reported unless the cut is between frames.
func TestFramesCutOff(t *testing.T) {
	for encoding, encode := range framings(t) {
		t.Run(encoding, func(t *testing.T) {
			messages := encode(frameDocs()...)
			want := read(t, frames(messages...)).inOrder()
			data := frames(messages...)
			borders := map[int]int{0: 0} // offset of a frame boundary: spans before it
			for i := range messages {
				borders[len(frames(messages[:i+1]...))] = []int{2, 3, 6}[i]
			}
			complete := 0
			for cut := range len(data) + 1 {
				spans, border := borders[cut]
				if border {
					complete = spans
				}
				got := readSmall(t, data[:cut])
				if cut < 12 && !border { // too short to be recognized
					if got.Len() > 0 || !got.loss() {
						t.Errorf("cut at %d: %d spans, %v", cut, got.Len(), got.diags)
					}
					continue
				}
				if n := got.Len(); n < complete || diff(got.inOrder(), want[:min(n, len(want))]) != "" {
					t.Errorf("cut at %d: %d spans, %d complete: %s", cut, n, complete, diff(got.inOrder(), want))
				}
				codes := ""
				if !border {
					at := 0
					for b := range borders {
						if b < cut {
							at = max(at, b)
						}
					}
					codes = fmt.Sprintf("otlp-truncated@f1+%d", at)
				}
				if got.codes() != codes {
					t.Errorf("cut at %d: diagnostics %v, want %q", cut, got.diags, codes)
				}
			}
		})
	}
}

// Every byte is changed in turn: other frames lose nothing, no data is made up, and a missing span
// is reported.
func TestFramesFlipped(t *testing.T) {
	for encoding, encode := range framings(t) {
		t.Run(encoding, func(t *testing.T) {
			messages := encode(frameDocs()...)
			data := frames(messages...)
			want := read(t, data).inOrder()
			inFrame := []int{0, 0, 1, 2, 2, 2}
			for _, bit := range flips() {
				for i := range everyByte(0, len(data)) {
					mask := byte(1) << ((i + bit) % 8)
					damaged := []byte(data)
					damaged[i] ^= mask
					got := readSmall(t, string(damaged))
					hit := 0
					for hit < 2 && i >= len(frames(messages[:hit+1]...)) {
						hit++
					}
					text := got.inOrder()
					if i >= 4+6 || i == 3 { // the head of the file must identify the format
						for s, frame := range inFrame {
							if frame != hit && !slices.Contains(text, want[s]) {
								t.Errorf("byte %d ^ %#x: span %d of another frame is lost; %v", i, mask, s, got.diags)
							}
						}
					}
					if got.Len() < len(want) && !got.loss() {
						t.Errorf("byte %d ^ %#x: %d spans left, not reported: %v", i, mask, got.Len(), got.diags)
					}
					if got.Len() > len(want) {
						t.Errorf("byte %d ^ %#x: %d spans", i, mask, got.Len())
					}
				}
			}
		})
	}
}

// Other kinds of damage to files of frames.
func TestFramesDamaged(t *testing.T) {
	for encoding, encode := range framings(t) {
		m := encode(frameDocs()...)
		length := func(n int, message string) string {
			return string(binary.BigEndian.AppendUint32(nil, uint32(n))) + message
		}
		first := len(frames(m[0]))
		for _, c := range []struct{ name, data, spans, codes string }{
			{"zeros between, as after a crash", frames(m[0]) + strings.Repeat("\x00", 4096) + frames(m[1:]...), "a b c d e f", "otlp-frame@f1+%d"},
			{"zeros at the end", frames(m[0]) + strings.Repeat("\x00", 4096), "a b", "otlp-frame@f1+%d"},
			{"text between", frames(m[0]) + "disk full\n" + frames(m[1:]...), "a b c d e f", "otlp-frame@f1+%d"},
			{"a frame without its head", frames(m[0]) + m[1] + frames(m[2]), "a b d e f", "otlp-frame@f1+%d"},
			{"a length that is too large", frames(m[0]) + length(len(m[1])+500, m[1]) + frames(m[2]), "a b c d e f", "otlp-frame@f1+%d"},
			{"a length beyond the end", frames(m[0]) + length(1<<26, m[1]) + frames(m[2]), "a b c d e f", "otlp-frame@f1+%d"},
			{"a frame that stops short, then a good one", frames(m[0]) + frames(m[1])[:60] + frames(m[2]), "a b d e f", ""},
			{"a length that is too small", frames(m[0]) + length(len(m[1])-20, m[1]) + frames(m[2]), "a b d e f", ""},
		} {
			t.Run(encoding+"/"+c.name, func(t *testing.T) {
				got := read(t, c.data)
				if got.names() != c.spans {
					t.Errorf("spans %s, want %s", got.names(), c.spans)
				}
				if c.codes != "" {
					c.codes = fmt.Sprintf(c.codes, first)
				}
				if !got.loss() || c.codes != "" && !strings.HasPrefix(got.codes(), c.codes) {
					t.Errorf("diagnostics %v, want %q", got.diags, c.codes)
				}
			})
		}
	}
}

// The contents of a message are damaged, though its frame is intact.
func TestProtoDamagedInside(t *testing.T) {
	message := protoMessages(t, doc(span("a"), rich("b"), span("c")))[0]
	replace := func(old, new string) string {
		if strings.Count(message, old) == 0 || len(old) != len(new) {
			panic("nothing to replace")
		}
		return frames(strings.Replace(message, old, new, 1))
	}
	id := func(name string) string { // trace id with its tag, then span id
		s := read(t, doc(span(name))).Span(0)
		return string(binary.BigEndian.AppendUint64([]byte("\x12\x08"), s.ID))
	}
	event := string(protoEvent.encode(object{{"timeUnixNano", "1787000000000000005"}}))
	for _, c := range []struct{ name, data, spans, codes string }{
		{"span id of another type", replace(id("b"), "\x14"+id("b")[1:]), "a c", "otlp-invalid-span@f1+0"},
		{"span id of 7 bytes", replace(id("b"), "\x12\x07"+id("b")[2:]), "a c", "otlp-invalid-span@f1+0"},
		{"span id in a field that is not read", replace(id("b"), "\x1a"+id("b")[1:]), "a c", "otlp-invalid-span@f1+0"},
		{"event time of another type", replace(event, "\x0a"+event[1:]), "a c", "otlp-invalid-span@f1+0"},
		{"event time in a field that is unknown", replace(event, "\x41"+event[1:]), "a b c", "otlp-lost-value@f1+0 otlp-unknown-key@f1+0"},
		{"unknown field in the document", frames(message + "\x7a\x01x"), "a b c", "otlp-unknown-key@f1+0"},
		{"rubbish behind the fields", frames(message + "\x07\x07"), "a b c", "otlp-protobuf@f1+0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.data)
			if got.names() != c.spans || got.codes() != c.codes {
				t.Errorf("spans %s, diagnostics %v; want %s, %q", got.names(), got.diags, c.spans, c.codes)
			}
		})
	}
}

// A document is cut off in the middle of an intact frame.
func TestZstdFrameWithDamageInside(t *testing.T) {
	a, b := doc(span("a"), span("b")), doc(span("c"))
	for _, c := range []struct{ data, spans, codes string }{
		{a[:len(a)-60] + "\n" + b, "a c", "otlp-truncated@f1+0"},
		{b + "\n" + a[:len(a)-60], "c a", "otlp-truncated@f1+0"},
		{b + "\nrubbish\n" + a, "c a b", "otlp-syntax@f1+0"},
	} {
		got := read(t, frames(packed(c.data)...)+frames(packed(doc(span("z")))...))
		if got.names() != c.spans+" z" || got.codes() != c.codes {
			t.Errorf("spans %s, diagnostics %v; want %s z, %s", got.names(), got.diags, c.spans, c.codes)
		}
	}
}

// A zstd frame that expands to far more than its size is read in small pieces.
func TestZstdFrameOfManyDocuments(t *testing.T) {
	docs := strings.Repeat(doc(span("a"), span("b"))+"\n", 20_000)
	got := read(t, frames(packed(docs)...))
	if got.Len() != 40_000 || len(got.diags) > 0 {
		t.Errorf("%d spans, %v", got.Len(), got.diags)
	}
}

func TestSniff(t *testing.T) {
	for name, data := range map[string]string{
		"lines": doc(span("a")), "indented": indented(doc(span("a"))), "byte order mark": "\ufeff" + doc(span("a")),
		"logs": `{"resourceLogs":[]}`, "head cut off": span("a")[40:], "field names": `{"resource_spans":[]}`,
		"zstd frames": frames(packed(doc())...), "protobuf frames": frames(protoMessages(t, doc(span("a")))...),
	} {
		if !sniff([]byte(data)) {
			t.Errorf("%s: not recognized", name)
		}
	}
	for _, data := range []string{"", "{}", "[]", `{"traceEvents":[]}`, "SQLite format 3\x00", "\x1f\x8b", strings.Repeat("\n", 100),
		string(bytes.Repeat([]byte{0, 0, 0, 10}, 10))} {
		if sniff([]byte(data)) {
			t.Errorf("%q is taken for OTLP", data)
		}
	}
}

// Spans in files without lines have the position of their frame.
func TestPlacesInFrames(t *testing.T) {
	a, b := doc(span("a"), span("b")), doc(span("c"))
	for _, messages := range [][]string{packed(a, b), protoMessages(t, a+b)} {
		d := spantable.New(&trace.Diags{})
		for _, name := range []string{"one", "two"} {
			if err := Read(d, name, strings.NewReader(frames(messages...))); err != nil {
				t.Fatal(err)
			}
		}
		second := int64(lengthSize + len(messages[0]))
		for i, want := range []trace.Pos{
			{File: "one", Offset: 0}, {File: "one", Offset: 0}, {File: "one", Offset: second},
			{File: "two", Offset: 0}, {File: "two", Offset: 0}, {File: "two", Offset: second},
		} {
			if got := d.Pos(i); got != want {
				t.Errorf("span %d is at %v, want %v", i, got, want)
			}
		}
	}
}
