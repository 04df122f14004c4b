// Package testinput gives tests their inputs: simulated dumps, and the folder of
// shared real data where there is one.
package testinput

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Shared returns the path of a file among the shared data, which lies outside of
// the project: $SGTRACE_SHARED, else ../shared beside it. The test is skipped,
// visibly, where it is not.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv("SGTRACE_SHARED")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared")
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if matches, err := filepath.Glob(path); err != nil || len(matches) == 0 {
		t.Skipf("no shared data at %s; set SGTRACE_SHARED", path)
	}
	return path
}

// root returns the folder of go.mod.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}

// ReadZstd returns the decompressed content of a file.
func ReadZstd(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Simulate runs the simulator and returns its OTLP dump and the truth about it.
func Simulate(t testing.TB, c simulator.Config) ([]byte, *simulator.Truth) {
	t.Helper()
	var dump bytes.Buffer
	truth := SimulateTo(t, &dump, c)
	return dump.Bytes(), truth
}

// SimulateTo does so, and writes the dump to w.
func SimulateTo(t testing.TB, w io.Writer, c simulator.Config) *simulator.Truth {
	t.Helper()
	run, err := simulator.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := otlp.Write(w, run); err != nil {
		t.Fatal(err)
	}
	return run.Truth()
}

// EveryMode returns a dump of a few requests of each kind of deployment, with short
// outputs, for fuzz tests to edit.
func EveryMode(t testing.TB, requests int) (dumps [][]byte) {
	t.Helper()
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		config := simulator.DefaultConfig(uint64(mode) + 1)
		config.Mode, config.Requests = mode, requests
		config.Output.Max = 3
		dump, _ := Simulate(t, config)
		dumps = append(dumps, dump)
	}
	return dumps
}

// Gunzip returns the decompressed content of a file.
func Gunzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
