package convert

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A file of any format says how to open it, in the times of its viewer: in Chrome JSON, these are
// relative to the first event.
func TestOpeningOf(t *testing.T) {
	const first = 1_700_000_000_000_000_000
	dir := t.TempDir()
	want := trace.Opening{Pin: []string{"a > queued · TP0", "b"}, From: first + 50, To: first + 70}
	said, relative := want, want
	relative.Pin, relative.From, relative.To = []string{"queued · TP0", "b"}, 50, 70
	for name, want := range map[string]trace.Opening{
		"out.pftrace": want, "out.pftrace.gz": want, "out.json": relative, "out.json.gz": relative,
	} {
		b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
		for _, a := range said.Attributes() {
			b.Attribute(a.Key, a.Value)
		}
		b.Slice(trace.Slice{Time: first, Dur: 100, Track: b.Track(trace.Track{Name: b.Intern("a")}), Name: b.Intern("s")}, 0)
		path := filepath.Join(dir, name)
		out, err := CreateOutput(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(b.Finish()); err != nil {
			t.Fatal(err)
		}
		got, err := OpeningOf(path)
		if err != nil || !slices.Equal(got.Pin, want.Pin) || got.From != want.From || got.To != want.To {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	for name, content := range map[string]string{"empty.json": "", "foreign.json": `{"traceEvents":[]}`, "cut.pftrace": "\x0a\x7f\x08", "list.json": "[\n]"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := OpeningOf(path); err != nil || got.Pin != nil || got.From != 0 || got.To != 0 {
			t.Errorf("%s: %+v, %v; want nothing", name, got, err)
		}
	}
}
