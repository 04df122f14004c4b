package change

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Findings tells what changed, and which ranks were late all the time. Durations that
// changed at about the time at which load or lateness did are evidence of that.
func (c *Changes) Findings(b *cause.Costs) []finding.Finding {
	var out, falls []finding.Finding
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
		out = append(out, finding.Finding{
			Kind: finding.Straggler, At: f.Where, Weight: b.WaitsFor(&f.Where), Show: []string{"--timeline"},
			Text: fmt.Sprintf("%s ends %s late all the time, by %s in the median: its peers wait for it", f.Name, f.Stage, words.Nearly(f.After.P50)),
		})
	}
	return out
}

// isCause reports whether a change may be why others happened.
func (c *Change) isCause() bool {
	m := c.Shifts[0].Metric
	return m.isLoad() || m == LatenessChanged
}

// nearest returns the index of the cause that is next to a time, -1 if none is near.
func (c *Changes) nearest(causes []finding.Finding, t trace.Time) int {
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
func (c *Change) finding(b *cause.Costs) finding.Finding {
	first := &c.Shifts[0]
	f := finding.Finding{Kind: first.findingKind(), At: first.Where, Since: c.Time, Text: c.Sentence(), Show: []string{"--timeline"}}
	switch f.Kind {
	case finding.Load:
		f.At = place.Where{} // what there is to do comes from outside
		if first.rises() || first.Metric == ShareChanged {
			f.Weight = b.BeyondUsual(c.Time, cause.OverloadCauses...)
		}
	case finding.Straggler:
		f.Weight = b.WaitsFor(&f.At)
	case finding.Transfer:
		f.Weight = b.BeyondUsual(c.Time, cause.Transfer)
	default:
		f.Weight = first.cost(b)
	}
	return f
}

// findingKind tells what a shift, and what came with it, is about.
func (f *Shift) findingKind() finding.Kind {
	switch phase := f.Means.Phase(); {
	case f.Metric.isLoad():
		return finding.Load
	case f.Metric == LatenessChanged:
		return finding.Straggler
	case f.Scope == place.Everywhere:
		return finding.Change
	case phase == request.TransferPhase:
		return finding.Transfer
	case (phase == request.QueuePhase || phase == request.BootstrapPhase) && f.rises() && !(f.Role == request.Unified && f.Means == request.DecodeQueueing):
		// On a unified server that is part of the running batch.
		return finding.Load
	}
	return finding.Change
}

// cost is about what longer stages cost: how many there were afterward times by how
// much the median rose. A median that fell costs nothing.
func (f *Shift) cost(b *cause.Costs) float64 {
	if f.Metric != MedianChanged || !f.rises() {
		return 0
	}
	return min(1, b.Part(float64(f.After.N)*float64(f.After.P50-f.Before.P50)))
}
