package change

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// claim returns the time that requests would have saved without c: what each shift made longer at its place, and the
// longer waits and fuller batches behind the first one: at its place, or everywhere if load changed.
func (all *Changes) claim(c *Change, b *cause.Costs) finding.Claim {
	first := &c.Shifts[0]
	if !first.costs() || first.Sized {
		return nil
	}
	behind := first.Location
	if first.Metric.isLoad() {
		behind = place.Location{Scope: place.Everywhere}
	}
	over, alone := all.until(first), all.alone(c) // when the first shift ended, and its effects with it
	var claim finding.Claim
	// At From there is no baseline, nothing queues behind TTFT or TPOT, lateness knows who waits, slow tokenizing only delays arrivals, and
	// a slight change makes no queue.
	if c.Time > all.From && first.slowFrom == 0 && !first.isSeen() && first.Metric != LatenessChanged && first.Means != request.Tokenizing && !first.slight() {
		claim = b.Risen(cause.Span{From: c.Time, Until: over, Alone: alone, At: behind, Only: first.only()}, b.BySize, all.behind(c)...)
	}
	for i := range c.Shifts {
		f := &c.Shifts[i]
		switch {
		case i > 0 && (first.Metric == ArrivalsChanged || first.Metric == PromptChanged) && (f.Metric.saves() || f.Metric.isLength()):
			continue // a property of the added requests, or of longer prompts, not a cost of its own
		case slices.ContainsFunc(c.Shifts, func(g Shift) bool { return g.knows(f) }):
			continue
		case first.Metric == LatenessChanged && f.Metric == PaceChanged: // its steps include the wait for the late rank
			claim = claim.And(b.Amounts(f.extraTimes(), append([]cause.Cause{cause.SlowRank}, append(f.causes(), cause.Interference)...)...))
			continue
		}
		if f.costs() && (i == 0 || !first.knowsWhoSees() || !f.isSeen()) {
			claim = claim.And(f.claim(b, cause.Span{From: c.Time, Until: cmp.Or(all.until(f), over), Alone: alone, At: f.Location, Only: f.only()}))
		}
	}
	return claim
}

// slight reports whether work takes longer by less than a tenth: where that alone makes as many wait again, servers were busy for more than
// 0.8 of the time before, and requests waited all along.
func (f *Shift) slight() bool {
	return f.Metric == PaceChanged && f.After.value(f.Metric) < finding.Slight*f.Before.value(f.Metric)
}

// tooSlightFor reports whether a shift is too slight to be why another stage takes longer: it makes no queue, and no other work longer.
func (f *Shift) tooSlightFor(g *Shift) bool {
	return f.slight() && g.Metric != PaceChanged && g.Stage != "" && !g.isSeen() && g.Means.Phase() != f.Means.Phase()
}

// knowsWhoSees reports whether the claim of a shift at its place already includes what users see of it: a pace measures
// every request, and if one server is slower, users of the others notice nothing.
func (f *Shift) knowsWhoSees() bool {
	return f.Metric == PaceChanged || f.Location.Scope == place.OneRank && !f.Metric.isLoad()
}

// knows reports whether a pace that became longer accounts for all of another shift at the
// same place: a late rank makes steps longer, too.
func (f *Shift) knows(of *Shift) bool {
	return f.Metric == PaceChanged && f.costs() && of.Metric != PaceChanged && of.Stage != "" && !of.isSeen() &&
		(of.Metric == LatenessChanged || of.Means.Phase() == f.Means.Phase()) && of.Location.Overlaps(&f.Location)
}

// behind returns the causes that may take longer downstream of a change. Fuller batches under more arrivals are how servers
// work, not an avoidable cost; and if servers became slower at the same load, that is why steps take longer. A request that
// waits for a transfer is in no batch, and makes no step longer. A pace that includes prefills accounts for steps itself.
func (all *Changes) behind(c *Change) []cause.Cause {
	first := &c.Shifts[0]
	var not []cause.Cause
	slower := slices.ContainsFunc(all.List, func(c Change) bool { return c.Shifts[0].Metric == PaceChanged && c.Shifts[0].costs() })
	switch {
	case slices.ContainsFunc(c.Shifts, func(f Shift) bool { return f.whole }):
		not = []cause.Cause{cause.Decode, cause.Interference}
	case all.slowerOnceMore(first):
		not = []cause.Cause{cause.Decode} // each pace claims what it made longer
	case first.Metric.isLoad() && (first.Metric == ArrivalsChanged || slower), first.Stage != "" && first.Means.Phase() == request.TransferPhase:
		not = []cause.Cause{cause.Decode, cause.Interference, cause.SharedBatch}
	}
	return slices.DeleteFunc(slices.Clone(cause.OverloadCauses), func(c cause.Cause) bool { return slices.Contains(not, c) })
}

// slowerOnceMore reports whether the decoding of the same servers became slower at another time, too.
func (all *Changes) slowerOnceMore(f *Shift) bool {
	return f.Metric == PaceChanged && slices.ContainsFunc(all.List, func(c Change) bool {
		g := &c.Shifts[0]
		return g.Metric == PaceChanged && g.Means == request.Answering && g.costs() && g.Time != f.Time && g.Location.Overlaps(&f.Location)
	})
}

// claim returns the time in a span that f itself added.
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
		causes := f.causes()
		if f.whole {
			causes = append(causes, cause.Interference)
		}
		return b.Slower(f.extraTimes(), f.whole, causes...)
	case LatenessChanged:
		claim, _ := b.WaitsFor(&f.Location)
		return claim
	}
	return b.Risen(span, b.BySize, f.causes()...)
}

// costs reports whether a shift made anything longer, or moved load from one server to others.
func (f *Shift) costs() bool {
	switch {
	case f.Stage == "e2e": // its parts do
		return false
	case f.Metric.saves():
		return !f.rises()
	case f.Metric.isEnd():
		return false
	}
	return f.rises() || f.Metric == ShareChanged || f.settles() || f.slowFrom != 0
}

// only returns the places of the ranks that have a pace, or nil if all ranks of the role do.
func (f *Shift) only() []place.Location {
	if len(f.Ranks) >= f.Peers {
		return nil
	}
	return order.EachRow(f.Steps, func(s *PaceStep) place.Location { return s.Location })
}

// isSeen reports whether a shift is in what users see: TTFT or TPOT. Nothing queues behind these.
func (f *Shift) isSeen() bool { return f.Stage == "ttft" || f.Stage == "tpot" }

// wholeAnswer is the stage of requests about which only E2E is known.
const wholeAnswer = "answer"

// settles reports whether a pace settled gradually at its usual value, as warm-ups do.
func (f *Shift) settles() bool { return f.Metric == PaceChanged && f.Shape == changepoint.Settling }

// until returns when a shift was over or undone; 0 if never.
func (all *Changes) until(f *Shift) trace.Time {
	if f.Shape == changepoint.Spell || f.Metric == CachedChanged && f.Until != 0 {
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

// causes returns the causes that make up the changed stage.
func (f *Shift) causes() []cause.Cause {
	switch {
	case f.Stage == "tpot":
		return []cause.Cause{cause.Decode, cause.Interference, cause.SlowRank, cause.Return}
	case f.Stage == "ttft":
		return beforeFirst
	case f.Stage == wholeAnswer:
		return []cause.Cause{cause.Unaccounted}
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

// beforeFirst are the causes of the time to the first token.
var beforeFirst = []cause.Cause{cause.Router, cause.Dispatch, cause.Encode, cause.Intake, cause.DecodeBootstrap, cause.PrefillBootstrap, cause.Queue,
	cause.Prefill, cause.ChunkWait, cause.Transfer, cause.PrefillSide, cause.DecodeQueue, cause.FirstStep}

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
