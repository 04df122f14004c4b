package chrometrace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A file is cut off at every byte because its writer was killed. Everything complete before the cut
// is read, and the loss is reported once.
func TestCutOffAtEveryByte(t *testing.T) {
	data := kinetoDoc(6)
	whole := parsed(t, data)
	begins, ends := 0, []int{} // begin of the list, ends of events
	begins = strings.Index(data, `"traceEvents": [`) + len(`"traceEvents": [`)
	for at := 0; ; {
		i := strings.Index(data[at:], "    }\n  }")
		if i < 0 {
			break
		}
		at += i + len("    }\n  }")
		ends = append(ends, at)
	}
	if len(ends) != 6 {
		t.Fatal(ends)
	}
	want := whole.events()
	for cut := begins; cut < len(data)-2; cut++ {
		complete := 0
		for complete < len(ends) && ends[complete] <= cut {
			complete++
		}
		r := readFuzzed(Options{Workers: 1}, small, same, []byte(data[:cut]))
		if r.err != nil {
			t.Fatalf("cut at %d: %v", cut, r.err)
		}
		if d := diff(r.events(), want[:complete]); d != "" {
			t.Errorf("cut at %d: %s", cut, d)
		}
		if len(r.diags) != 1 || !r.loss() || r.diags[0].Count != 1 {
			t.Errorf("cut at %d, after %q: %v", cut, data[max(0, cut-20):cut], r.diags)
		}
	}
}

// The beginning of a file is cut off at every byte: events that begin after the cut are read.
func TestHeadCutOffAtEveryByte(t *testing.T) {
	data := kinetoDoc(6)
	for cut := 1; cut < strings.Index(data, `"e4"`); cut++ {
		r := readFuzzed(Options{Workers: 1}, small, same, []byte(data[cut:]))
		first := 0
		for strings.LastIndex(data, fmt.Sprintf("{\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"e%d\"", [...]string{"cpu_op", "cpu_op", "kernel"}[first%3], first)) < cut {
			first++
		}
		want := []string{}
		for i := first; i < 6; i++ {
			want = append(want, fmt.Sprint("e", i))
		}
		if got := strings.Fields(r.names()); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("cut at %d, before %.30q: events %v, want %v; %v", cut, data[cut:], got, want, r.diags)
		}
	}
}

// Every byte is damaged in many ways. All events except the damaged one and its neighbor are
// unaffected, whether the header, a comma, or a quote was hit. No data is made up.
func TestEveryByteDamaged(t *testing.T) {
	const n = 5
	data := []byte(kinetoDoc(n))
	whole := parsed(t, string(data))
	want := whole.events()
	begins := make([]int, n)
	for i := range begins {
		begins[i] = bytes.LastIndex(data[:bytes.Index(data, fmt.Appendf(nil, "\"e%d\"", i))], []byte("{"))
	}
	from := bytes.Index(data, []byte(`"traceEvents": [`)) + 5
	damages := map[string]func(i int) []byte{
		"deleted": func(i int) []byte { return append(bytes.Clone(data[:i]), data[i+1:]...) },
		"doubled": func(i int) []byte { return append(bytes.Clone(data[:i+1]), data[i:]...) },
		"flipped": func(i int) []byte { b := bytes.Clone(data); b[i] ^= 1 << (i % 8); return b },
	}
	for _, with := range "\"{}[],:\\\n\x000" {
		damages[fmt.Sprintf("replaced by %q", with)] = func(i int) []byte { b := bytes.Clone(data); b[i] = byte(with); return b }
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			for i := from; i < len(data); i++ {
				r := readFuzzed(Options{Workers: 1}, small, same, damage(i))
				if r.err != nil {
					t.Fatalf("byte %d: %v", i, r.err)
				}
				if len(r.Events) > n || len(r.Events) < n && !r.loss() && !strings.Contains(r.codes(), "trace-unknown-phase") {
					t.Errorf("byte %d, %q: events %s; %v", i, data[max(0, i-10):min(len(data), i+10)], r.names(), r.diags)
				}
				hit := 0
				for hit < n-1 && begins[hit+1] <= i {
					hit++
				}
				got := map[string]bool{}
				for _, e := range r.events() {
					got[e] = true
				}
				for j, e := range want {
					if j != hit && !got[e] {
						t.Errorf("byte %d, %q: event %d is lost or changed, though %d was hit; %v", i, data[max(0, i-10):min(len(data), i+10)], j, hit, r.diags)
					}
				}
			}
		})
	}
}

// Two ranks write into one file, so that a document stands inside another, at every byte. The inner
// document is read completely, and the outer one loses at most two events.
func TestInterleavedWriters(t *testing.T) {
	outer, inner := kinetoDoc(5), strings.ReplaceAll(kinetoDoc(3), `"name": "e`, `"name": "i`)
	wantInner := parsed(t, inner).events()
	for i := 1; i < len(outer)-1; i++ {
		r := readFuzzed(Options{Workers: 1}, small, same, []byte(outer[:i]+inner+outer[i:]))
		if r.err != nil {
			t.Fatalf("at %d: %v", i, r.err)
		}
		got := strings.Join(r.events(), "\n")
		for _, e := range wantInner {
			if !strings.Contains(got, e) {
				t.Errorf("at %d, after %q: %.60s is lost; %v", i, outer[max(0, i-30):i], e, r.diags)
			}
		}
		if n := strings.Count(got, `"e`); n < 4 || n > 5 {
			t.Errorf("at %d, after %q: events %s", i, outer[max(0, i-30):i], r.names())
		}
	}
}

// A block is missing in the middle, as after a crash.
func TestLostBlock(t *testing.T) {
	data := kinetoDoc(12)
	from := strings.Index(data, `"e3"`)
	for _, size := range []int{40, 150, 512, 700} {
		for i := from; i < from+500; i++ {
			r := readFuzzed(Options{Workers: 1}, small, same, []byte(data[:i]+data[i+size:]))
			if names := r.names(); !strings.HasPrefix(names, "e0 e1 e2 ") || !strings.HasSuffix(names, " e10 e11") || len(r.Events) > 12 {
				t.Errorf("%d bytes at %d: events %s; %v", size, i, names, r.diags)
			}
		}
	}
}
