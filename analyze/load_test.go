package analyze

import (
	"bytes"
	"encoding/json"
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
	"github.com/sgtrace/sgtrace/trace"
)

// sharedFile returns the path of a file of the development data, and skips the
// test where that is not at hand.
func sharedFile(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("SGTRACE_SHARED")
	if dir == "" {
		dir = "../../shared"
	}
	path := filepath.Join(dir, "data", "otel", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("development data is not here: %v", err)
	}
	return path
}

var loaded sync.Map // *request.Set by file name: several tests read the same

// load reads one OTLP dump of the development data.
func load(t testing.TB, name string) *request.Set {
	t.Helper()
	path := sharedFile(t, name)
	if s, ok := loaded.Load(name); ok {
		return s.(*request.Set)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	s := build(t, name, r)
	loaded.Store(name, s)
	return s
}

// build makes a set of one OTLP dump.
func build(t testing.TB, name string, r io.Reader) *request.Set {
	t.Helper()
	d := otlpjson.NewDump(new(trace.Diags))
	if err := d.Read(name, r); err != nil {
		t.Fatal(err)
	}
	return assembly.Build(d).Set
}

// text renders a report, failing the test on any error.
func text(t testing.TB, r *Report, f Format, s Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readTruth reads what independent code has found in a dump.
func readTruth(t testing.TB, dump string) (truth truthFile) {
	t.Helper()
	name, _, _ := strings.Cut(dump, ".jsonl")
	b, err := os.ReadFile(sharedFile(t, name+".truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &truth); err != nil {
		t.Fatal(err)
	}
	return truth
}

type truthFile struct {
	Stage       map[string]truthRow `json:"stage_ms"`
	StageByRank map[string]truthRow `json:"stage_by_rank_ms"`
	Root        map[string]truthRow `json:"root_duration_ms"`
	TTFT        map[string]truthRow `json:"ttft_attr_ms"`
}

// A truthRow is in ms.
type truthRow struct {
	N                   int
	Mean, Min, Max, Sum float64
	P50                 float64 `json:"p50_nr"`
	P90                 float64 `json:"p90_nr"`
	P99                 float64 `json:"p99_nr"`
}
