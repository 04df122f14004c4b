package analyze

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// overloadCauses are what requests spend more time in when there is more to do than
// can be done.
var overloadCauses = []Cause{
	CauseIntake, CauseDecodeBootstrap, CausePrefillBootstrap, CauseQueue, CauseSharedBatch, CauseChunkWait,
	CauseDecodeQueue, CauseDecode, CauseInterference, CauseRetraction,
}

// findings tells what changed, and which ranks were late all the time. Durations that
// changed at about the time at which load or lateness did are evidence of that.
func (c *Changes) findings(b *bill) []Finding {
	var out, falls []Finding
	for i := range c.List {
		switch change := &c.List[i]; {
		case !change.isCause():
		case change.Shifts[0].Metric == ArrivalsChanged && !change.Shifts[0].rises():
			falls = append(falls, change.finding(b)) // leads nothing: less to do costs nothing
		default:
			out = append(out, change.finding(b))
		}
	}
	for i := range c.List {
		change := &c.List[i]
		if change.isCause() {
			continue
		}
		if k := c.nearest(out, change.Time); k >= 0 {
			out[k].Evidence = append(out[k].Evidence, change.Sentence())
		} else if k := c.nearest(falls, change.Time); k >= 0 {
			falls[k].Evidence = append(falls[k].Evidence, change.Sentence())
		} else {
			out = append(out, change.finding(b))
		}
	}
	out = append(out, falls...)
	for i := range c.Late {
		f := &c.Late[i]
		out = append(out, Finding{
			Kind: FindingStraggler, At: f.Where, Weight: b.waitsFor(&f.Where), Show: []string{"--timeline"},
			Text: fmt.Sprintf("%s ends %s late all the time, by %s in the median: its peers wait for it", f.Name, f.Stage, words.Nearly(f.After.P50)),
		})
	}
	return out
}

// isCause tells whether a change may be why others happened.
func (c *Change) isCause() bool {
	m := c.Shifts[0].Metric
	return m.isLoad() || m == LatenessChanged
}

// nearest returns the index of the cause that is next to a time, -1 if none is near.
func (c *Changes) nearest(causes []Finding, t trace.Time) int {
	const part = 20 // of the time that was searched
	nearest, away := -1, (c.To-c.From)/part
	for k := range causes {
		if d := max(causes[k].Since-t, t-causes[k].Since); d <= away {
			nearest, away = k, d
		}
	}
	return nearest
}

// finding is about what changed first.
func (c *Change) finding(b *bill) Finding {
	first := &c.Shifts[0]
	f := Finding{Kind: first.findingKind(), At: first.Where, Since: c.Time, Text: c.Sentence(), Show: []string{"--timeline"}}
	switch f.Kind {
	case FindingLoad:
		f.At = Where{} // what there is to do comes from outside
		if first.rises() || first.Metric == ShareChanged {
			f.Weight = b.beyondUsual(c.Time, overloadCauses...)
		}
	case FindingStraggler:
		f.Weight = b.waitsFor(&f.At)
	case FindingTransfer:
		f.Weight = b.beyondUsual(c.Time, CauseTransfer)
	default:
		f.Weight = first.cost(b)
	}
	return f
}

// findingKind tells what a shift, and what came with it, is about.
func (f *Shift) findingKind() FindingKind {
	switch phase := f.Means.Phase(); {
	case f.Metric.isLoad():
		return FindingLoad
	case f.Metric == LatenessChanged:
		return FindingStraggler
	case f.Scope == Everywhere:
		return FindingChange
	case phase == request.TransferPhase:
		return FindingTransfer
	case (phase == request.QueuePhase || phase == request.BootstrapPhase) && f.rises() && !(f.Role == request.Unified && f.Means == request.DecodeQueueing):
		// On a unified server that is part of the running batch.
		return FindingLoad
	}
	return FindingChange
}

// cost is about what longer stages cost: how many there were afterwards times by how
// much the median rose. A median that fell costs nothing.
func (f *Shift) cost(b *bill) float64 {
	if f.Metric != MedianChanged || !f.rises() {
		return 0
	}
	return min(1, b.part(float64(f.After.N)*float64(f.After.P50-f.Before.P50)))
}
