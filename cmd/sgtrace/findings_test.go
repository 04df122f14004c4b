package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A timeline shows the findings that the report prints for the same inputs, with the same facts:
// dumps, PyTorch traces, and exports of one run.
func TestTimelinesShowFindings(t *testing.T) {
	dir := recordedOf(t, 1, 60)
	for _, inputs := range []string{"otel.jsonl", "otel.jsonl torch nsys"} {
		checkFindingsDrawn(t, dir, inputs)
		if got := findingsDrawn(t, mustRun(t, dir, "merge --no-findings -o out.json "+inputs).file); len(got) > 0 {
			t.Errorf("%s: --no-findings draws %v", inputs, got)
		}
	}
}

// Real exports contain data that simulated ones lack: unified memory, thread samples, and processes
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

// checkFindingsDrawn compares the findings in a timeline with those in the report on the same inputs.
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

// findingsDrawn returns the findings in a Chrome JSON timeline, in row order. The heading of their
// group repeats the first few.
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

// The output of each command that a finding suggests is not empty and fits about one screen:
// readers want an answer, not a flood.
func TestCommandsOfFindingsFitAScreen(t *testing.T) {
	checkCommandsOfFindings(t, recordedOf(t, 1, 60), "otel.jsonl", "torch", "nsys")
}

func TestCommandsOfRealFindingsFitAScreen(t *testing.T) {
	dir := testinput.Shared(t, "data")
	for _, inputs := range []string{
		"otel/a_unified_tp2.jsonl", "otel2/rolling_restart.jsonl.zst", "otel2/client_timeouts.jsonl.zst",
		"reality/trace_diff/after.json.gz", "reality/nsys/alltables_2023.4.sqlite.zst", "nsys/synth/nodeA.sqlite",
	} {
		checkCommandsOfFindings(t, dir, inputs)
	}
}

// checkCommandsOfFindings runs all commands that the findings for some inputs suggest.
func checkCommandsOfFindings(t *testing.T, dir string, inputs ...string) {
	t.Helper()
	const most, width = 55, 110
	var report struct {
		Findings []struct {
			Text     string
			Commands [][]string
		}
	}
	r := sgtrace(t, dir, append([]string{"report", "--format", "json"}, inputs...)...)
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) == 0 {
		t.Errorf("%v: the report finds nothing", inputs)
	}
	tried := map[string]bool{}
	for _, f := range report.Findings {
		for _, command := range f.Commands {
			line := strings.Join(command, " ")
			if tried[line] {
				continue
			}
			tried[line] = true
			got := sgtrace(t, dir, append(command[1:], "--width", fmt.Sprint(width))...)
			lines := strings.Split(strings.TrimRight(got.out, "\n"), "\n")
			widest := 0
			for _, l := range lines {
				widest = max(widest, utf8.RuneCountInString(l))
			}
			if got.status != exitOK && got.status != exitPartial || len(lines) < 3 || len(lines) > most || widest > width {
				t.Errorf("%s prints %d lines, %d wide, status %d: want 3 to %d lines, %d wide; the finding: %s", line, len(lines), widest, got.status, most, width, f.Text)
			}
		}
	}
}
