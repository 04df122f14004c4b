package testset

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// SharedFile returns the path of a dump of the shared data, and skips the test where
// that is not at hand.
func SharedFile(t testing.TB, name string) string {
	t.Helper()
	return testinput.Shared(t, "data", "otel", name)
}

var loaded sync.Map // *request.Set by file name: several tests read the same

// LoadDump reads one OTLP dump of the development data.
func LoadDump(t testing.TB, name string) *request.Set {
	t.Helper()
	path := SharedFile(t, name)
	if s, ok := loaded.Load(name); ok {
		return s.(*request.Set)
	}
	s := LoadFile(t, path)
	loaded.Store(name, s)
	return s
}

// LoadFile reads an OTLP dump.
func LoadFile(t testing.TB, path string) *request.Set {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	return BuildSet(t, filepath.Base(path), r)
}

// BuildSet makes a set of one OTLP dump, on one clock, as reports see it.
func BuildSet(t testing.TB, name string, r io.Reader) *request.Set {
	t.Helper()
	a := assemble(t, name, r)
	a.OnOneClock(a.Set.HostClocks())
	return a.Set
}

func assemble(t testing.TB, name string, r io.Reader) *assembly.Assembly {
	t.Helper()
	d := spantable.New(new(trace.Diags))
	if err := otlpjson.Read(d, name, r); err != nil {
		t.Fatal(err)
	}
	return assembly.Build(d)
}

// Update tells that tests were called with -update: they rewrite what they compare with.
var Update = flag.Bool("update", false, "rewrite what the tests compare with, such as files in testdata, with what the code prints")

// CompareGolden compares got with testdata/name, in which long lines are folded.
func CompareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		if err := os.WriteFile(path, []byte(testinput.Fold(got)), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.SplitAfter(got, "\n"), strings.SplitAfter(testinput.Unfold(string(want)), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := line(gotLines, i), line(wantLines, i)
		if g != w {
			t.Fatalf("%s:%d differs (go test -update rewrites it):\n got %q\nwant %q", path, i+1, g, w)
		}
	}
}

// ComparePage compares a Markdown table with the one of the same heading in a page, which make docs writes.
func ComparePage(t *testing.T, path, table string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(table, "\n")
	before, rest, ok := strings.Cut(string(page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no table with the heading %q", path, heading)
	}
	_, behind, _ := strings.Cut(rest, "\n\n")
	want := before + "\n" + strings.TrimSpace(table) + "\n\n" + behind
	switch {
	case want == string(page):
	case *Update:
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table %q in %s is stale: make docs", heading, path)
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
