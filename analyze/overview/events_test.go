package overview

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Events are in order, within the time of the requests, and include the planted burst and
// the failed requests. The draft of the post-mortem has all of them, and all findings.
func TestEvents(t *testing.T) {
	set, truth := testset.Simulated(t, simulator.DefaultConfig(1))
	o := New(Input{Inputs: []string{"otel.jsonl"}, Requests: set})
	events := o.events()
	failed, burst := 0, false
	for i, e := range events {
		if i > 0 && e.At < events[i-1].At || e.At < o.From || e.At > o.To {
			t.Errorf("event %d is at %d: %s", i, e.At, e.Text)
		}
		if strings.HasPrefix(e.Text, "request ") && strings.HasSuffix(e.Text, " fails") {
			failed++
		}
		off := int64(e.At) - truth.Imbalance.OnsetNs
		burst = burst || strings.HasPrefix(e.Text, "finding ") && max(off, -off) < 1e9
	}
	want := 0
	for _, row := range truth.Counts.Outcomes {
		if row.Name == string(simulator.TransferFailed) {
			want = row.Count
		}
	}
	if failed != want || want == 0 {
		t.Errorf("%d requests fail, want %d", failed, want)
	}
	if !burst {
		t.Errorf("no event is at the planted burst: %+v", events)
	}
	draft := o.text(t, table.FormatMarkdown, table.Style{})
	for _, e := range events {
		if !strings.Contains(draft, escaped(e.Text)) {
			t.Errorf("the draft has no %q", e.Text)
		}
	}
	heads := slices.DeleteFunc(strings.Split(draft, "\n"), func(line string) bool { return !strings.HasPrefix(line, "#") })
	if len(heads) != 4 || heads[0] != "### Summary" || heads[1] != "### Timeline" || heads[3] != "### Commands to repeat this" {
		t.Errorf("headings %q", heads)
	}
	for i := range o.Findings {
		if !strings.Contains(draft, escaped(o.Findings[i].Text)) || !strings.Contains(draft, "- `"+o.list().command(&o.Findings[i])+"`") {
			t.Errorf("finding %d is not in the draft", i+1)
		}
	}
}
