package change

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// claim returns the time that requests would not have taken without a change: what each shift
// made longer where it happened, and the waits and fuller batches behind it: there, or where
// all of the load is, if it is that which changed.
func (all *Changes) claim(c *Change, b *cause.Costs) finding.Claim {
	first := &c.Shifts[0]
	if !first.costs() || first.Sized {
		return nil
	}
	behind := first.Location
	if first.Metric.isLoad() {
		behind = place.Location{Scope: place.Everywhere}
	}
	over, alone := all.until(first), all.alone(c) // with it what follows
	var claim finding.Claim
	if c.Time > all.From && !first.isSeen() && first.Metric != LatenessChanged && first.Means != request.Tokenizing { // else nobody knows what it was before, who is late knows who waits, and schedulers only get requests later
		claim = b.Risen(cause.Span{From: c.Time, Until: over, Alone: alone, At: behind, Only: first.only()}, b.BySize, all.behind(c)...)
	}
	for i := range c.Shifts {
		f := &c.Shifts[i]
		switch {
		case i > 0 && (first.Metric == ArrivalsChanged || first.Metric == PromptChanged) && (f.Metric.saves() || f.Metric.isLength()):
			continue // that is what the others ask for
		case slices.ContainsFunc(c.Shifts, func(g Shift) bool { return g.knows(f) }):
			continue
		case first.Metric == LatenessChanged && f.Metric == PaceChanged: // the wait at the end of a step is part of it
			claim = claim.And(b.Amounts(f.extraTimes(), append([]cause.Cause{cause.SlowRank}, append(f.causes(), cause.Interference)...)...))
			continue
		}
		if f.costs() && (i == 0 || !first.knowsWhoSees() || !f.isSeen()) {
			claim = claim.And(f.claim(b, cause.Span{From: c.Time, Until: cmp.Or(all.until(f), over), Alone: alone, At: f.Location, Only: f.only()}))
		}
	}
	return claim
}

// knowsWhoSees reports whether what users see of a change is part of what it claims where it is: a pace knows, and where one
// server takes longer, those of the others see nothing of it.
func (f *Shift) knowsWhoSees() bool {
	return f.Metric == PaceChanged || f.Location.Scope == place.OneRank && !f.Metric.isLoad()
}

// knows reports whether a pace that became longer has all that a shift made longer there: steps take longer
// for a rank that ends them late, too.
func (f *Shift) knows(of *Shift) bool {
	return f.Metric == PaceChanged && f.costs() && of.Metric != PaceChanged && of.Stage != "" && !of.isSeen() &&
		(of.Metric == LatenessChanged || of.Means.Phase() == f.Means.Phase()) && of.Location.Overlaps(&f.Location)
}

// behind returns what takes longer behind a change. That batches are fuller when more requests
// arrive is how servers work, and costs nothing that anyone could spare; and where servers
// became slower at the same load, steps take longer for that. Whoever waits for a transfer is in no batch, and
// makes no step longer; and a pace may know what steps take.
func (all *Changes) behind(c *Change) []cause.Cause {
	first := &c.Shifts[0]
	var not []cause.Cause
	slower := slices.ContainsFunc(all.List, func(c Change) bool { return c.Shifts[0].Metric == PaceChanged && c.Shifts[0].costs() })
	switch {
	case slices.ContainsFunc(c.Shifts, func(f Shift) bool { return f.whole }):
		not = []cause.Cause{cause.Decode, cause.Interference}
	case all.slowerOnceMore(first):
		not = []cause.Cause{cause.Decode} // each knows what it made longer
	case first.Metric.isLoad() && (first.Metric == ArrivalsChanged || slower), first.Stage != "" && first.Means.Phase() == request.TransferPhase:
		not = []cause.Cause{cause.Decode, cause.Interference, cause.SharedBatch}
	}
	return slices.DeleteFunc(slices.Clone(cause.OverloadCauses), func(c cause.Cause) bool { return slices.Contains(not, c) })
}

// slowerOnceMore reports whether a place became slower for other reasons, too.
func (all *Changes) slowerOnceMore(f *Shift) bool {
	return slices.ContainsFunc(all.List, func(c Change) bool {
		g := &c.Shifts[0]
		return g.Metric == PaceChanged && g.Means == request.Answering && g.costs() && g.Time != f.Time && g.Location.Overlaps(&f.Location)
	})
}

// claim returns what the shift itself made longer in a span.
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

// only returns the ranks that have a pace, where others of their role do not.
func (f *Shift) only() []place.Location {
	if len(f.Ranks) >= f.Peers {
		return nil
	}
	return order.EachRow(f.Steps, func(s *PaceStep) place.Location { return s.Location })
}

// isSeen reports whether a shift is of what users see: the time to the first token, or from one to
// the next. Nothing waits for these, so that nothing is behind them.
func (f *Shift) isSeen() bool { return f.Stage == "ttft" || f.Stage == "tpot" }

// settles reports whether a pace came to what is usual, bit by bit: servers begin like that.
func (f *Shift) settles() bool { return f.Metric == PaceChanged && f.Shape == changepoint.Settling }

// until returns when a shift was over, or was undone; 0 is not.
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

// causes returns those into which the time of the changed stage went.
func (f *Shift) causes() []cause.Cause {
	switch {
	case f.Stage == "tpot":
		return []cause.Cause{cause.Decode, cause.Interference, cause.SlowRank, cause.Return}
	case f.Stage == "ttft":
		return beforeFirst
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

// doubts are about requests of which spans are missing, so that nobody knows when they
// arrived, whether two of them are one, or where they were sent. Load changed only if it
// did whatever these requests were.
type doubts struct {
	arrivals []trace.Time
	routes   [request.Other + 1][]trace.Time // by role
}

// arrivalDoubtful reports whether nobody knows when a request arrived, or whether it is
// the half of another one.
func arrivalDoubtful(r *request.Request) bool {
	return !r.Complete() && r.Flags&(request.MissingRoot|request.Unjoined) != 0
}

// add notes what is doubtful about a request.
func (d *doubts) add(w *observer, r *request.Request) {
	if arrivalDoubtful(r) {
		d.arrivals = memory.Append(d.arrivals, r.Start)
	}
	var has [request.Other + 1]bool
	for _, p := range w.set.PartsOf(r) {
		part := &w.set.Parts[p]
		has[part.Role] = true
		if part.Serves() && w.ranks.Route(part) == request.None {
			d.routes[part.Role] = memory.Append(d.routes[part.Role], part.Start)
		}
	}
	switch { // the other half went somewhere, too
	case r.Complete():
	case has[request.Prefill] && !has[request.Decode]:
		d.routes[request.Decode] = memory.Append(d.routes[request.Decode], r.Start)
	case has[request.Decode] && !has[request.Prefill]:
		d.routes[request.Prefill] = memory.Append(d.routes[request.Prefill], r.Start)
	}
}

func (d *doubts) sort() {
	slices.Sort(d.arrivals)
	for role := range d.routes {
		slices.Sort(d.routes[role])
	}
}

// within counts the times in [from, to).
func within(times []trace.Time, from, to trace.Time) float64 {
	i, _ := slices.BinarySearch(times, from)
	k, _ := slices.BinarySearch(times, to)
	return float64(k - i)
}

// leastFactor returns by how much a number changes at least that lies between low and high
// before and after; 1 if it may be the same.
func leastFactor(before, after [2]float64) float64 {
	switch {
	case after[0] > before[1]:
		return factor(before[1], after[0])
	case after[1] < before[0]:
		return factor(before[0], after[1])
	}
	return 1
}

// rateOf bounds the arrivals per second of n known ones in [from, to).
func (d *doubts) rateOf(n int, from, to trace.Time) [2]float64 {
	seconds := float64(to-from) / 1e9
	return [2]float64{distribution.Ratio(float64(n), seconds), distribution.Ratio(float64(n)+within(d.arrivals, from, to), seconds)}
}

// shareOf bounds the share of a rank that has own of n known ones of a role in [from, to).
func (d *doubts) shareOf(role request.Role, own, n int, from, to trace.Time) [2]float64 {
	unknown := within(d.routes[role], from, to)
	all := float64(n) + unknown
	return [2]float64{distribution.Ratio(float64(own), all), distribution.Ratio(float64(own)+unknown, all)}
}

// sharesDiffer reports whether two shares are far enough apart to matter.
func sharesDiffer(before, after [2]float64) bool {
	away := max(after[0]-before[1], before[0]-after[1])
	between := leastFactor([2]float64{odds(before[0]), odds(before[1])}, [2]float64{odds(after[0]), odds(after[1])})
	return between >= minOddsFactor && !math.IsNaN(away) && away >= minShare
}

// What people call what saves work, and subkinds of findings.
const (
	Arrivals     = "arrivals per second"
	OutputLength = "length of answers"
	PromptLength = "length of prompts"
)

// savings holds what requests ask for, and what of it they are spared: how long prompts and
// answers are, tokens of the prompt that are cached, and tokens that come out of a decode step
// besides the first, as drafts of them were accepted.
type savings struct {
	metric Metric
	values []saving  // by at
	at     []savings // of the same, each of one rank that computes prompts, if it is cached tokens and there are several
	place  place.Location
	cut    []trace.Time // when answers began that were given up: nobody knows how long they would have been
}

// A saving is what one request has: n of all. What it says is about the time from at to until.
type saving struct {
	at, until trace.Time
	n, all    int64
}

// observeSavings notes what a request is spared.
func (w *observer) observeSavings(r *request.Request) {
	add := func(k int, of Metric, from, until trace.Time, n, all int64) {
		s := &w.savings[k]
		s.metric = of
		s.values = memory.Append(s.values, saving{from, max(from, until), n, all})
	}
	m := &r.Metrics
	first := r.Start + trace.Time(max(0, m.TTFT))
	if m.CachedTokens >= 0 && m.PromptTokens > 0 {
		add(0, CachedChanged, r.Start, first, min(m.CachedTokens, m.PromptTokens), m.PromptTokens)
		w.cached = memory.Append(w.cached, w.computes(r))
	}
	if tokens, steps := m.StepYield(); steps > 0 {
		add(1, YieldChanged, first, r.End, tokens, steps)
	}
	if m.CompletionTokens > 0 && r.Status == request.Finished { // others are cut short
		add(2, OutputChanged, r.Start, r.Start, m.CompletionTokens, 1)
	}
	if m.PromptTokens > 0 {
		add(3, PromptChanged, r.Start, r.Start, m.PromptTokens, 1)
	}
}

// computes returns the rank that computes the prompt of a request; request.None if that is not known.
func (w *observer) computes(r *request.Request) int32 {
	for _, p := range w.set.PartsOf(r) {
		if part := &w.set.Parts[p]; part.Serves() && part.Role != request.Decode {
			return int32(w.ranks.Route(part))
		}
	}
	return request.None
}

// divideCached divides by rank what is cached: each has a cache of its own.
func (w *observer) divideCached() {
	s := &w.savings[0]
	by := make([]savings, len(w.ranks.Places))
	for i, rank := range w.cached {
		if rank != request.None {
			by[rank].values = memory.Append(by[rank].values, s.values[i])
		}
	}
	for rank := range by {
		if by[rank].metric, by[rank].place = CachedChanged, w.ranks.Places[rank]; by[rank].searched() {
			s.at = append(s.at, by[rank])
		}
	}
	if len(s.at) < 2 {
		s.at = nil
	}
	for i := range s.at {
		s.at[i].sort()
	}
}

func (w *observer) sortSavings() {
	w.divideCached()
	slices.Sort(w.cut)
	w.savings[2].cut = w.cut
	for i := range w.savings {
		w.savings[i].sort()
	}
}

func (s *savings) sort() {
	slices.SortStableFunc(s.values, func(x, y saving) int { return cmp.Compare(x.at, y.at) })
}

// searched reports whether there are enough requests to search, and any is spared anything.
func (s *savings) searched() bool {
	return len(s.values) >= Fewest && slices.ContainsFunc(s.values, func(v saving) bool {
		return s.metric.isLength() || s.metric == CachedChanged && v.n > 0 || s.metric == YieldChanged && v.n > v.all
	})
}

// search finds where requests ask for more or less than before, or less of it is spared: on a rank, if it is
// on one of several, or on less than half of them.
func (s *savings) search(level float64) []Shift {
	var alone []Shift
	ranks := 0
	for i := range s.at {
		found := s.at[i].searchAll(level)
		alone, ranks = append(alone, found...), ranks+min(1, len(found))
	}
	if ranks == 1 || ranks > 0 && 2*ranks < len(s.at) {
		return alone
	}
	return s.searchAll(level)
}

// searchAll is search of all values. That more is cached explains nothing that anyone would ask about: caches fill.
func (s *savings) searchAll(level float64) []Shift {
	values := memory.Make[float64](len(s.values))
	for i, v := range s.values {
		values[i] = float64(v.n) / float64(v.all)
	}
	at := func(k int) trace.Time {
		return distribution.Midway(s.values, k, s.values[0].at, s.values[len(s.values)-1].at, func(v saving) trace.Time { return v.at })
	}
	longest := slices.Max(values)
	means := func(from, k, to int) (before, after float64) {
		// Those that were given up may have been as long as any: they make the shorter ones no longer than the others.
		most := func(from, to int, other float64) float64 {
			cut, n := within(s.cut, at(from), at(to)), float64(to-from)
			return max(s.mean(from, to), min(other, distribution.Ratio(s.mean(from, to)*n+longest*cut, n+cut)))
		}
		before, after = s.mean(from, k), s.mean(k, to)
		return most(from, k, after), most(k, to, before)
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		before, after := means(from, k, to)
		switch s.metric {
		case OutputChanged, PromptChanged:
			return factor(before, after) >= minLengthFactor
		case CachedChanged:
			return max(before-after, after-before) >= minCached && factor(odds(before), odds(after)) >= minOddsFactor
		}
		return before >= minYieldFactor*after
	}})
	like := Shift{Location: s.place, Metric: s.metric}
	found := shifts(changes, at, s.level, like)
	if len(found) == 0 && s.metric.isLength() { // those of one tenant may be longer, and not most
		limit := changepoint.Limit(values)
		long := func(from, to int) float64 {
			n := order.Count(values[from:to], func(v float64) bool { return v >= limit })
			return distribution.Ratio(float64(n), float64(to-from))
		}
		return shifts(changepoint.Excesses(values, limit, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
			before, after := means(from, k, to)
			return factor(odds(long(from, k)), odds(long(k, to))) >= minTailFactor && factor(before, after) >= minMeanFactor
		}}), at, s.level, like)
	}
	if s.metric == CachedChanged {
		for i := range found {
			c := &changes[i]
			found[i].Kept = keptOf(values[c.From:c.At], values[c.At:c.To], float64(at(c.At)-at(c.From)), float64(at(c.To)-at(c.At)))
		}
	}
	date(found, changes, s.values[0].at, func(k int) changepoint.Observation {
		v, y := &s.values[k], values[k]
		switch s.metric {
		case OutputChanged, PromptChanged:
			y = math.Log(y)
		case CachedChanged: // a request has one share, and not that of part of its time
			return observation(s.values[0].at, v.at, v.at, y)
		}
		return observation(s.values[0].at, v.at, v.until, y)
	})
	return falls(found)
}

// keptOf returns how many requests there are after a change that have as large a share of their tokens cached as three of
// four had before it, in comparison to these, by time: 1 if only others came in addition, and 0 if nobody has that any more.
func keptOf(before, after []float64, ns, nsAfter float64) float64 {
	most := 0.75
	sorted := slices.Sorted(slices.Values(before))
	limit := sorted[int((1-most)*float64(len(sorted)))]
	n := func(values []float64) (n float64) {
		for _, v := range values {
			if v >= limit {
				n++
			}
		}
		return n
	}
	return distribution.Ratio(n(after)/nsAfter, n(before)/ns)
}

// falls leaves out where more is cached, which only ends a time in which less is.
func falls(found []Shift) (out []Shift) {
	for i, f := range found {
		switch {
		case f.Metric != CachedChanged || !f.rises():
			out = append(out, f)
		case i > 0 && !found[i-1].rises():
			out[len(out)-1].Until = f.Time
		}
	}
	return out
}

// mean returns what the requests [from, to) are spared, of all of it.
func (s *savings) mean(from, to int) float64 {
	n, all := int64(0), int64(0)
	for _, v := range s.values[from:to] {
		n, all = n+v.n, all+v.all
	}
	return distribution.Ratio(float64(n), float64(all))
}

func (s *savings) level(from, to int) Level {
	l := newLevel(to - from)
	if s.metric == CachedChanged {
		l.Share = s.mean(from, to)
	} else {
		l.Rate = s.mean(from, to)
	}
	return l
}
