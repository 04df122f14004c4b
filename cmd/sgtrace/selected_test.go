package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// For a large dump, unselected parts are not read, and the output is the same. The same dump
// compressed is small enough to be read whole.
func TestSelectionsReadLess(t *testing.T) {
	config := simulator.DefaultConfig(20)
	config.Mode, config.Requests, config.Level = simulator.Unified, 700, 3
	large, small := t.TempDir(), t.TempDir()
	data, truth := testinput.Simulate(t, config)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(data)
	z.Close()
	for _, name := range []string{"otel.jsonl", "again.jsonl"} {
		for dir, content := range map[string][]byte{large: data, small: packed.Bytes()} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, command := range []string{
		"requests --slowest 3 otel.jsonl",
		"report --by-stage --slowest 5 --role unified otel.jsonl",
		"merge --from +2s --to +3s -o out.json otel.jsonl",
		"report --from +2s --to +4s --table findings --format json otel.jsonl",
		"report --from +2s --to +4s --table summary.costs --format csv otel.jsonl",
		"merge --slowest 4 -o out.pftrace otel.jsonl",
		"merge --rid " + truth.Requests[9].RID + " -o out.pftrace otel.jsonl",
		"diff --from +1s --to +3s otel.jsonl again.jsonl",
		"diff --before-to +2s --after-from +2s --after-to +5s otel.jsonl again.jsonl",
	} {
		got, want := mustRun(t, large, command), mustRun(t, small, command)
		if !strings.Contains(got.err, "[input-unread]") || strings.Contains(want.err, "[input-unread]") {
			t.Errorf("%s does not read less:\n%s\n%s", command, got.err, want.err)
		}
		got.err, want.err = "", ""
		same(t, command, want, got)
	}
}

// A capture that does not record when it began has no dates.
func TestWindowBehindUndatedCapture(t *testing.T) {
	dir := t.TempDir()
	trace := `{"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1000000,"dur":2500,"args":{"stream":7,"device":0}}]}`
	if err := os.WriteFile(filepath.Join(dir, "trace.json"), []byte(trace), 0o644); err != nil {
		t.Fatal(err)
	}
	got := sgtrace(t, dir, "report", "--from", "+1h", "trace.json")
	if want := "--from and --to select nothing: the captures last 2.50 ms, and do not say when they began"; got.status != exitFailed || !strings.Contains(got.err, want) {
		t.Errorf("status %d: %s", got.status, got.err)
	}
}
