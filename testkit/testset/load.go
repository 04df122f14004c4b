package testset

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
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

// SharedFile returns the path of a dump of the shared data, and skips the test if there is none.
func SharedFile(t testing.TB, name string) string {
	t.Helper()
	return testinput.Shared(t, "data", "otel", name)
}

var loaded sync.Map // *request.Set by file name, for several tests

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

// BuildSet makes a set from one OTLP dump, on one clock, as for reports.
func BuildSet(t testing.TB, name string, r io.Reader) *request.Set {
	t.Helper()
	a := assemble(t, name, r)
	a.Unstep()
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

// Update is set by -update: tests then rewrite the files that they compare with.
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

// ComparePage compares a Markdown table with the one under the same heading in a page, which make docs writes.
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

// A Loss is a way in which spans get lost between servers and a file.
type Loss uint8

const (
	ByBatch   Loss = iota // exporters drop single batches, as their queues are full
	ByLine                // the Collector drops everything that it received in a fifth of a second
	ByProcess             // the exporter of one process fails for a while
)

// String returns how spans get lost.
func (l Loss) String() string { return [...]string{"by batch", "by line", "by process"}[l] }

// Losses are all ways to lose spans.
var Losses = []Loss{ByBatch, ByLine, ByProcess}

// batchStart precedes every batch in a line except the first one.
var batchStart = []byte(`,{"resource":{`)

const lineStart, lineEnd = `{"resourceSpans":[`, "]}\n"

// Lose drops a share of the batches of a simulated dump.
func Lose(dump []byte, by Loss, share float64, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(by)+1))
	var lost func(batch []byte) bool
	switch by {
	case ByBatch:
		lost = func([]byte) bool { return rng.Float64() < share }
	case ByProcess:
		lost = outage(dump, share, rng)
	}
	var out []byte
	for line := range bytes.Lines(dump) {
		if by == ByLine {
			if rng.Float64() >= share {
				out = append(out, line...)
			}
			continue
		}
		var kept [][]byte
		for _, batch := range batchesOf(line) {
			if !lost(batch) {
				kept = append(kept, batch)
			}
		}
		if len(kept) > 0 {
			out = append(append(append(out, lineStart...), bytes.Join(kept, []byte(","))...), lineEnd...)
		}
	}
	return out
}

// batchesOf returns the batches of a line.
func batchesOf(line []byte) [][]byte {
	batches := bytes.Split(line[len(lineStart):len(line)-len(lineEnd)], batchStart)
	for i := range batches[1:] {
		batches[i+1] = append(bytes.Clone(batchStart[1:]), batches[i+1]...)
	}
	return batches
}

// outage chooses a process, and consecutive batches of it: a share of those of all processes, or all that it has.
func outage(dump []byte, share float64, rng *rand.Rand) func(batch []byte) bool {
	processOf := func(batch []byte) string {
		head, _, _ := bytes.Cut(batch, []byte(`"scopeSpans"`))
		return string(head)
	}
	counts, total := map[string]int{}, 0
	var processes []string
	for line := range bytes.Lines(dump) {
		for _, batch := range batchesOf(line) {
			process := processOf(batch)
			if counts[process] == 0 {
				processes = append(processes, process)
			}
			counts[process]++
			total++
		}
	}
	process := processes[rng.IntN(len(processes))]
	n := min(int(share*float64(total)+0.5), counts[process])
	from, at := rng.IntN(counts[process]-n+1), 0
	return func(batch []byte) bool {
		if processOf(batch) != process {
			return false
		}
		at++
		return at > from && at <= from+n
	}
}
