package change

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/internal/changepoint"
)

// A change that only undoes another is reported with that one: the change in which
// its series rose, even if another shift leads it.
func TestUndone(t *testing.T) {
	waits := Shift{Stage: "decode_transferred", Metric: MedianChanged, Before: Level{P50: 10}, After: Level{P50: 900}}
	fell := Shift{Stage: "decode_transferred", Metric: TailChanged, Back: true, Before: Level{Share: 0.5}, After: Level{Share: 0.01}}
	c := Changes{List: []Change{
		{Time: 100, Shifts: []Shift{{Metric: ArrivalsChanged, Before: Level{Rate: 1}, After: Level{Rate: 4}}, waits}},
		{Time: 150, Shifts: []Shift{{Metric: ArrivalsChanged, Back: true, Before: Level{Rate: 4}, After: Level{Rate: 1}}}},
		{Time: 160, Shifts: []Shift{fell}},
	}}
	if k := c.undone(&c.List[2]); k != 0 {
		t.Errorf("it ends change %d, want 0", k)
	}
	if k := c.undone(&c.List[0]); k != -1 {
		t.Errorf("what rises ends change %d", k)
	}
	fell.Stage = "prefill_waiting"
	c.List[2].Shifts[0] = fell
	if k := c.undone(&c.List[2]); k != -1 {
		t.Errorf("another series ends change %d", k)
	}
}

// If a spell of a slow server explains the rise of a latency, it explains the fall as well: both are evidence.
func TestUndoneEvidence(t *testing.T) {
	steps := func(before, after int64, back bool) []Shift {
		return []Shift{{Stage: "decode_loop", Metric: MedianChanged, Sized: true, Back: back, Before: Level{P50: before}, After: Level{P50: after}}}
	}
	c := Changes{From: 1000, To: 20_000, List: []Change{
		{Time: 990, Shifts: steps(10, 18, false)},
		{Time: 1000, Shifts: []Shift{{Metric: PaceChanged, Shape: changepoint.Spell, Until: 9000, Before: Level{P50: 10}, After: Level{P50: 18}}}},
		{Time: 9100, Shifts: steps(18, 10, true)},
	}}
	got := c.Findings(nil)
	if len(got) != 1 || got[0].Subkind != Pace || got[0].Until != 9000 || len(got[0].Evidence) != 3 {
		t.Errorf("findings: %+v", got)
	}
}

// Prompts that return to their old length are no change by themselves: they mark the end of the longer prompts.
func TestUndoneLengths(t *testing.T) {
	found := []Shift{{Metric: PromptChanged, Sized: true, Time: 1000, Before: Level{Rate: 1000}, After: Level{Rate: 2600}}, {Metric: PromptChanged, Sized: true, Time: 9000, Before: Level{Rate: 2600}, After: Level{Rate: 1200}}}
	markReturns(found)
	c := Changes{From: 1, To: 20_000, List: []Change{{Time: 1000, Shifts: found[:1]}, {Time: 9000, Shifts: found[1:]}}}
	if got := c.Findings(nil); len(got) != 1 || got[0].Until != 9000 || !strings.Contains(got[0].Text, ", until ") || len(got[0].Evidence) != 2 {
		t.Errorf("findings: %+v", got)
	}
	found[1].After.Rate, found[1].Back = 400, false // shorter than ever before
	if got := c.Findings(nil); len(got) != 2 {
		t.Errorf("findings: %+v", got)
	}
}
