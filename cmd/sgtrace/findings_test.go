package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A timeline shows what the report finds in the same inputs, with the same facts: dumps,
// PyTorch traces and exports of one run.
func TestTimelinesShowFindings(t *testing.T) {
	dir := recordedOf(t, 1, 60)
	for _, inputs := range []string{"otel.jsonl", "otel.jsonl torch nsys"} {
		checkFindingsDrawn(t, dir, inputs)
		if got := findingsDrawn(t, mustRun(t, dir, "merge --no-findings -o out.json "+inputs).file); len(got) > 0 {
			t.Errorf("%s: --no-findings draws %v", inputs, got)
		}
	}
}

// Real exports have what simulated ones lack: unified memory, samples of threads, and processes
// that use no GPU.
func TestTimelinesShowFindingsOfRealExports(t *testing.T) {
	dir := testinput.Shared(t, "data", "nsys", "real")
	for _, name := range []string{
		"bwyogatama+Mordred-Deprecated__report1__95afc3a6.sqlite",
		"sdroruganti+cuda-kernel-library__report2__341587d0.sqlite",
		"ynan1+aws_gpu__profile_default_dbg__9f010166.sqlite",
	} {
		checkFindingsDrawn(t, t.TempDir(), filepath.Join(dir, name))
	}
}

// checkFindingsDrawn compares the findings of a timeline of inputs with those of the report.
func checkFindingsDrawn(t *testing.T, dir, inputs string) {
	t.Helper()
	var report struct {
		Findings []struct {
			ID, Kind, Text string
			Cost           float64
		}
	}
	if err := json.Unmarshal([]byte(mustRun(t, dir, "report --format json "+inputs).out), &report); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range report.Findings {
		want = append(want, fmt.Sprintf("%s %s %.6f %s", f.ID, f.Kind, f.Cost, f.Text))
	}
	if len(want) == 0 {
		t.Errorf("%s: the report finds nothing", inputs)
	}
	if got := findingsDrawn(t, mustRun(t, dir, "merge -o out.json "+inputs).file); !slices.Equal(got, want) {
		t.Errorf("%s: the timeline shows\n%s\nthe report has\n%s", inputs, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// findingsDrawn are the findings of a timeline in Chrome JSON, in the order of their rows. The
// heading of their group repeats the first ones.
func findingsDrawn(t *testing.T, file string) (found []string) {
	t.Helper()
	var timeline struct {
		TraceEvents []struct {
			Ph, Name string
			TID      int
			Args     map[string]any
		}
	}
	if err := json.Unmarshal([]byte(file), &timeline); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, e := range timeline.TraceEvents {
		if e.Ph == "X" && e.Args["finding_id"] != nil {
			line := fmt.Sprintf("%s %s %.6f %s", e.Args["finding_id"], e.Args["finding_kind"], e.Args["finding_cost"], e.Name)
			found = append(found, line)
			rows[line] = e.TID
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return rows[a] - rows[b] })
	return slices.Compact(found)
}
