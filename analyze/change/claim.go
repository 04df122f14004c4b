package change

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// claim is the time that requests would not have taken without a change: what each shift
// made longer where it happened, and the waits and fuller batches behind it: there, or where
// all of the load is, if it is that which changed.
func (all *Changes) claim(c *Change, b *cause.Costs) finding.Claim {
	first := &c.Shifts[0]
	if !first.costs() || first.Sized {
		return nil
	}
	behind := first.Where
	if first.Metric.isLoad() {
		behind = place.Where{Scope: place.Everywhere}
	}
	over := all.until(first) // with it what follows
	var claim finding.Claim
	if c.Time > all.From { // else nobody knows what it was before
		claim = b.Risen(cause.Span{From: c.Time, Until: over, At: behind}, b.BySize, all.behind(first)...)
	}
	for i := range c.Shifts {
		if f := &c.Shifts[i]; f.costs() {
			claim = claim.And(f.claim(b, cause.Span{From: c.Time, Until: cmp.Or(all.until(f), over), At: f.Where}))
		}
	}
	return claim
}

// behind is what takes longer behind a change. That batches are fuller when more requests
// arrive is how servers work, and costs nothing that anyone could spare; and where servers
// became slower at the same load, steps take longer for that.
func (all *Changes) behind(first *Shift) []cause.Cause {
	slower := slices.ContainsFunc(all.List, func(c Change) bool { return c.Shifts[0].Metric == PaceChanged && c.Shifts[0].costs() })
	if !first.Metric.isLoad() || first.Metric != ArrivalsChanged && !slower {
		return cause.OverloadCauses
	}
	return slices.DeleteFunc(slices.Clone(cause.OverloadCauses), func(c cause.Cause) bool {
		return c == cause.Decode || c == cause.Interference || c == cause.SharedBatch
	})
}

// claim is what the shift itself made longer in a span.
func (f *Shift) claim(b *cause.Costs, span cause.Span) finding.Claim {
	switch f.Metric {
	case CachedChanged:
		return b.Uncached(span, f.Before.Share)
	case YieldChanged:
		return b.Risen(span, b.BySize, cause.Decode)
	case OutputChanged:
		return b.Risen(span, cause.ByRequest, cause.Decode, cause.Interference)
	case PromptChanged:
		return b.Risen(span, cause.ByRequest, cause.Prefill)
	case PaceChanged:
		return b.Amounts(f.extraTimes(), f.causes()...)
	case LatenessChanged:
		claim, _ := b.WaitsFor(&f.Where)
		return claim
	}
	return b.Risen(span, b.BySize, f.causes()...)
}

// costs reports whether a shift made anything longer, or moved it.
func (f *Shift) costs() bool {
	switch {
	case f.Stage == "e2e": // the parts of it do
		return false
	case f.Metric.saves():
		return !f.rises()
	case f.Metric.isEnd():
		return false
	}
	return f.rises() || f.Metric == ShareChanged || f.settles()
}

// settles reports whether a pace came to what is usual, bit by bit: servers begin like that.
func (f *Shift) settles() bool { return f.Metric == PaceChanged && f.Shape == changepoint.Settling }

// until is when a shift was over, or was undone; 0 is not.
func (all *Changes) until(f *Shift) trace.Time {
	if f.Shape == changepoint.Spell {
		return f.Until
	}
	for i := range all.List {
		for k := range all.List[i].Shifts {
			if g := &all.List[i].Shifts[k]; g.Back && g.Time > f.Time && g.sameSeries(f) {
				return g.Time
			}
		}
	}
	return 0
}

// causes are what the time of the stage that changed went into.
func (f *Shift) causes() []cause.Cause {
	switch {
	case f.Stage == "tpot":
		return []cause.Cause{cause.Decode, cause.Interference, cause.SlowRank, cause.Return}
	case f.Stage == "ttft":
		return []cause.Cause{cause.Router, cause.Dispatch, cause.Intake, cause.Queue, cause.Prefill, cause.Transfer, cause.FirstStep}
	}
	switch f.Means {
	case request.Stepping:
		return []cause.Cause{cause.Decode, cause.SlowRank}
	case request.DecodeQueueing:
		return []cause.Cause{cause.DecodeQueue}
	case request.SendPreparing, request.SendConnecting:
		return []cause.Cause{cause.PrefillBootstrap}
	case request.Encoding:
		return []cause.Cause{cause.Encode}
	}
	return phaseCauses[f.Means.Phase()]
}

var phaseCauses = [...][]cause.Cause{
	request.OtherPhase:     {cause.Other},
	request.RoutePhase:     {cause.Router},
	request.DispatchPhase:  {cause.Dispatch, cause.Router, cause.Intake, cause.Return}, // a busy process begins late and answers late
	request.QueuePhase:     {cause.Queue, cause.Intake},
	request.BootstrapPhase: {cause.DecodeBootstrap},
	request.PrefillPhase:   {cause.Prefill},
	request.TransferPhase:  {cause.Transfer},
	request.DecodePhase:    {cause.Decode},
}
