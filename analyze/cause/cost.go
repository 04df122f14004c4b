package cause

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Costs is the ledger of what findings cost: of every request that has finished, or that nobody
// got an answer to, the time that it spent by cause. A finding claims the time that a request would not have taken without it
// ([finding.Claim]), and what one finding has claimed is no longer there for the next one, so
// that all of them together cost no more than there was. The scale is the sum of the E2E of
// the finished requests, and of how long the others went on: see [Attributor.Unanswered].
//
// This is what requests would have saved to first order: nothing is replayed. A nil ledger
// claims nothing.
type Costs struct {
	set                  *request.Set
	finished, unanswered []Attribution // of requests, the ones before the others
	usual                Usual
	total                float64 // ns
	lost                 []bool  // of unanswered requests: they waited in vain
}

// NewCosts makes a ledger of the attributed requests of a set that have finished, with what each cause usually takes of them.
func NewCosts(s *request.Set, list []Attribution, usual Usual) *Costs {
	b := &Costs{set: s, finished: list, usual: usual}
	b.addUp(list)
	return b
}

// AddUnanswered adds requests that are [Attributor.Unanswered].
func (b *Costs) AddUnanswered(list []Attribution) {
	b.unanswered = list
	b.addUp(list)
}

// SetLost says which requests without an answer waited for a server that hangs or died. What servers take longer for else has no part in that.
func (b *Costs) SetLost(requests []int) {
	in := b.setOf(requests)
	b.lost = make([]bool, len(b.unanswered))
	for i := range b.unanswered {
		b.lost[i] = in[b.unanswered[i].Request]
	}
}

// isLost tells it of the i-th request.
func (b *Costs) isLost(i int) bool {
	return b.lost != nil && !b.answered(i) && b.lost[i-len(b.finished)]
}

func (b *Costs) addUp(list []Attribution) {
	for i := range Each(list) {
		spent := list[i].spent()
		b.total += float64(spent.Total())
	}
}

// n is how many requests the ledger has, and at returns the i-th.
func (b *Costs) n() int { return len(b.finished) + len(b.unanswered) }

func (b *Costs) at(i int) *Attribution {
	if b.answered(i) {
		return &b.finished[i]
	}
	return &b.unanswered[i-len(b.finished)]
}

// answered reports whether the i-th request has finished.
func (b *Costs) answered(i int) bool { return i < len(b.finished) }

// Part returns which part of all time ns is.
func (b *Costs) Part(ns float64) float64 {
	if b.total == 0 {
		return 0
	}
	return ns / b.total
}

// spent is the time of a request by cause as it was spent, as far as it lies in the time that was
// selected: what its size explains is part of it.
func (a *Attribution) spent() Causes {
	var all Causes
	for c := range all {
		all[c] = a.spentOn(Cause(c))
	}
	return all
}

// spentOn is [Attribution.spent] of one cause.
func (a *Attribution) spentOn(c Cause) int64 {
	ns := a.E2E[c]
	switch c {
	case PromptSize, SharedBatch, OutputLength:
		ns = 0
	case Prefill:
		ns += a.E2E[PromptSize] + a.E2E[SharedBatch]
	case Decode:
		ns += a.E2E[OutputLength]
	}
	return max(0, ns-a.Outside[c])
}

// whole is the cause that [Attribution.spent] has the time of c under.
func whole(c Cause) Cause {
	switch c {
	case PromptSize, SharedBatch:
		return Prefill
	case OutputLength:
		return Decode
	}
	return c
}

// wholes are the causes of a list as the ledger has them, each once.
func wholes(causes []Cause) []Cause {
	var out []Cause
	for _, c := range causes {
		if c = whole(c); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// usualFor returns what is usual of cause c, as the ledger has it, for a request like a.
func (b *Costs) usualFor(c Cause, a *Attribution) int64 {
	usual := b.usual.Of(c, a)
	switch c {
	case Prefill:
		usual += a.E2E[PromptSize]
	case Decode:
		usual = max(0, usual) + a.E2E[OutputLength]
	case Siblings: // it asks for them
		usual = a.E2E[Siblings]
	}
	if a.Partly {
		all := a.spentOn(c) + a.Outside[c]
		usual -= int64(float64(usual) * distribution.Fraction(a.Outside[c], all))
	}
	return max(0, usual)
}

// Beyond claims of some requests, indexes into Set.Requests, what is beyond the usual of each
// cause.
func (b *Costs) Beyond(requests []int, causes ...Cause) finding.Claim {
	in, causes := b.setOf(requests), wholes(causes)
	return func(i int, left []int64) {
		a := b.at(i)
		if !in[a.Request] {
			return
		}
		for _, c := range causes {
			left[c] = min(left[c], b.usualFor(c, a))
		}
	}
}

// AllOf claims of some requests all time of some causes.
func (b *Costs) AllOf(requests []int, causes ...Cause) finding.Claim {
	in, causes := b.setOf(requests), wholes(causes)
	return func(i int, left []int64) {
		if in[b.at(i).Request] {
			for _, c := range causes {
				left[c] = 0
			}
		}
	}
}

// Lost claims of those of some requests that have no answer what they went on for longer than requests usually take: as long an
// answer would have taken.
func (b *Costs) Lost(requests []int) finding.Claim {
	usual := b.usualTotal()
	in := b.setOf(requests)
	return func(i int, left []int64) {
		if b.answered(i) || !in[b.at(i).Request] {
			return
		}
		spent := b.at(i).spent()
		keep := min(1, distribution.Fraction(usual, spent.Total()))
		for c, ns := range spent {
			left[c] = min(left[c], int64(keep*float64(ns)))
		}
	}
}

// Amounts claims a time in ns of each of some requests, of the first causes of a list that
// have it: what is gone of these already is part of it.
func (b *Costs) Amounts(ns map[int]int64, causes ...Cause) finding.Claim {
	if b == nil {
		return nil
	}
	causes = wholes(causes)
	return func(i int, left []int64) {
		rest := ns[b.at(i).Request]
		if rest <= 0 {
			return
		}
		spent := b.at(i).spent()
		for _, c := range causes {
			part := min(rest, spent[c])
			left[c], rest = min(left[c], spent[c]-part), rest-part
		}
	}
}

// Slower claims what longer work took of each of some requests, in ns, of each cause of a list by its part of what they took, or of the
// first ones. Servers that became slower twice cost both: such claims add up, in any order, and what is gone for others is part of
// them.
func (b *Costs) Slower(ns map[int]int64, evenly bool, causes ...Cause) finding.Claim {
	if b == nil {
		return nil
	}
	causes = wholes(causes)
	return func(i int, left []int64) {
		rest := ns[b.at(i).Request]
		if rest <= 0 {
			return
		}
		spent, all := b.at(i).spent(), int64(0)
		for _, c := range causes {
			all += spent[c]
		}
		part := min(1, distribution.Fraction(rest, all))
		for _, c := range causes {
			longer := min(rest, spent[c])
			if evenly {
				longer = int64(part * float64(spent[c]))
			}
			rest -= longer
			slower := &left[Count+c]
			*slower = min(*slower+longer, spent[c])
			left[c] = min(left[c], spent[c]-*slower)
		}
	}
}

// setOf tells of every request of the set whether it is one of some.
func (b *Costs) setOf(requests []int) []bool {
	in := memory.Make[bool](len(b.set.Requests))
	for _, r := range requests {
		in[r] = true
	}
	return in
}

// A Span is when and where something is different.
type Span struct {
	From, Until trace.Time // 0 is from the beginning, and to the end
	// Alone is until when nothing else makes requests take longer, so that what does can be measured; 0 is Until.
	Alone trace.Time
	At    place.Location
	// Only are the ranks that it is of, where that is some of several; nil is all that are at the place.
	Only []place.Location
}

// Slowed claims a part of what some causes took in a span.
func (b *Costs) Slowed(span Span, part float64, causes ...Cause) finding.Claim {
	if b == nil {
		return nil
	}
	var parts [Count]float64
	causes = wholes(causes)
	for _, c := range causes {
		parts[c] = min(1, max(0, part))
	}
	return b.partsOf(span, parts, causes)
}

// partsOf claims a part of what each cause took in a span.
func (b *Costs) partsOf(span Span, parts [Count]float64, causes []Cause) finding.Claim {
	w := b.window(span)
	return func(i int, left []int64) {
		for _, c := range causes {
			if parts[c] > 0 && left[c] > 0 {
				w.take(i, left, c, parts[c])
			}
		}
	}
}

// take leaves of a cause the time without a part of what the i-th request spent there in
// the window: two findings that saw the same rise claim it once.
func (w *window) take(i int, left []int64, c Cause, part float64) {
	if w.isLost(i) {
		return
	}
	a := w.at(i)
	spent := a.spentOn(c)
	left[c] = min(left[c], spent-int64(float64(spent)*part*w.share(c, a)))
}

// Work is how much of what a cause takes time for a request has, in any unit: bytes to
// transfer, tokens to compute. Requests are compared by time per work.
type Work func(a *Attribution, c Cause) float64

// BySize takes prefills and decoding to be as much work as they usually take for so many
// tokens, and anything else to be the same work for all requests.
func (b *Costs) BySize(a *Attribution, c Cause) float64 {
	switch c {
	case Prefill:
		return max(1, float64(a.E2E[PromptSize]))
	case Decode, Interference, SlowRank:
		if tokens := b.set.Requests[a.Request].Metrics.DecodeTokens(); tokens > 0 {
			return float64(tokens)
		}
	}
	return 1
}

// ByRequest takes every request to be the same work: longer answers cost time.
func ByRequest(*Attribution, Cause) float64 { return 1 }

// Uncached claims in a span the part of prefills that a share of cached tokens would spare.
func (b *Costs) Uncached(span Span, share float64) finding.Claim {
	w := b.window(span)
	return func(i int, left []int64) {
		a := b.at(i)
		m := &b.set.Requests[a.Request].Metrics
		if lost := share*float64(m.PromptTokens) - float64(max(0, m.CachedTokens)); lost > 0 {
			w.take(i, left, Prefill, min(1, lost/float64(max(1, m.PrefillTokens()))))
		}
	}
}

// Risen claims by how much causes take longer in a span, per work, than at the same place
// before: the part that leaves the mean of before. What does not rise by more than chance
// explains is not claimed.
func (b *Costs) Risen(span Span, work Work, causes ...Cause) finding.Claim {
	causes = wholes(causes)
	w := b.window(span)
	// Sums of parts are added in their order, as the last digits depend on it.
	parts := parallel.Gather(w.n(), attributionSize, func(list []sides, from, to int) []sides {
		var s sides
		for i := from; i < to; i++ {
			w.addTo(&s, i, work, causes)
		}
		return append(list, s)
	})
	var all sides
	for i := range parts {
		for _, c := range causes {
			all.before[c].join(&parts[i].before[c])
			all.after[c].join(&parts[i].after[c])
		}
	}
	var rises [Count]float64
	for _, c := range causes {
		rises[c] = rise(&all.before[c], &all.after[c])
	}
	return b.partsOf(span, rises, causes)
}

// sides are what causes took before a span, and in it.
type sides struct{ before, after [Count]pace }

// addTo adds what causes took of the i-th request, unless it is on both sides, or behind. One without an answer
// says how long it was kept by what it came to, and nothing about what it would have come to.
func (w *window) addTo(s *sides, i int, work Work, causes []Cause) {
	a, unanswered := w.at(i), !w.answered(i)
	r := &w.set.Requests[a.Request]
	sums := &s.after
	if r.End <= w.From {
		sums = &s.before
	} else if r.Start < w.From || r.Start >= min(w.Until, w.Alone) {
		return
	}
	if a.Partly || w.isLost(i) {
		return
	}
	for _, c := range causes {
		if w.has(c, a) && !(unanswered && (c.PerToken() || c == Prefill || a.E2E[c] == 0)) {
			sums[c].add(float64(a.spentOn(c)), work(a, c))
		}
	}
}

// rise is the part of what is after that is beyond the mean of before; 0 if chance may explain it.
func rise(before, after *pace) float64 {
	const surely = 1 // standard error: what is there as likely as not
	usual, is := before.rate(), after.rate()
	if !(is > usual) || is-usual < surely*math.Hypot(before.deviation(), after.deviation()) {
		return 0
	}
	return 1 - usual/is
}

// A pace is what some requests took for their work.
type pace struct{ time, work, timeTime, timeWork, workWork float64 }

func (p *pace) add(time, work float64) {
	p.time, p.work = p.time+time, p.work+work
	p.timeTime, p.timeWork, p.workWork = p.timeTime+time*time, p.timeWork+time*work, p.workWork+work*work
}

// join adds what other requests took.
func (p *pace) join(o *pace) {
	p.time, p.work = p.time+o.time, p.work+o.work
	p.timeTime, p.timeWork, p.workWork = p.timeTime+o.timeTime, p.timeWork+o.timeWork, p.workWork+o.workWork
}

// rate is time per work; NaN without any.
func (p *pace) rate() float64 { return distribution.Ratio(p.time, p.work) }

// deviation is the standard error of the rate.
func (p *pace) deviation() float64 {
	r := p.rate()
	return math.Sqrt(max(0, p.timeTime-2*r*p.timeWork+r*r*p.workWork)) / p.work
}

// A window is a span whose place is looked up.
type window struct {
	*Costs
	Span
	procs []bool // that are there, by index into Set.Procs; nil is anywhere
}

func (b *Costs) window(span Span) *window {
	w := &window{Costs: b, Span: span}
	w.Until, w.Alone = cmp.Or(w.Until, math.MaxInt64), cmp.Or(w.Alone, math.MaxInt64)
	only := span.Only
	if span.At.Scope == place.OneRank {
		only = []place.Location{span.At}
	}
	if len(only) == 0 {
		return w
	}
	w.procs = make([]bool, len(b.set.Procs))
	for i := range only {
		team := only[i].Team()
		for p := range w.procs {
			w.procs[p] = w.procs[p] || team.Overlaps(new(place.NewLocation(b.set, p)))
		}
	}
	return w
}

// has reports whether a request has its time of a cause at the place.
func (w *window) has(c Cause, a *Attribution) bool {
	if w.procs == nil {
		return true
	}
	proc := a.ProcOf(c)
	return proc != request.None && w.procs[proc]
}

// share is the part of the time of a cause that a request spends in the window: what grows
// with every token is spread over the request, and anything else is over soon.
func (w *window) share(c Cause, a *Attribution) float64 {
	r := &w.set.Requests[a.Request]
	in := w.set.Window.Cut(r.Start, r.End)
	switch {
	case !w.has(c, a) || in.To <= w.From || in.From >= w.Until:
		return 0
	case c.PerToken() && in.To > in.From:
		return float64(min(in.To, w.Until)-max(in.From, w.From)) / float64(in.To-in.From)
	case r.Start < w.From:
		return 0
	}
	return 1
}

// WaitsFor claims the time that requests wait for the ranks at a place, and tells which
// requests wait.
func (b *Costs) WaitsFor(at *place.Location) (finding.Claim, finding.Affected) {
	if b == nil {
		return nil, finding.Affected{}
	}
	var waiting []int
	for i := range memory.Each(b.n(), attributionSize) {
		a := b.at(i)
		if a.Slow != request.None && a.E2E[SlowRank] > 0 && at.Overlaps(new(place.NewLocation(b.set, int(a.Slow)))) {
			waiting = append(waiting, a.Request)
		}
	}
	return b.AllOf(waiting, SlowRank), finding.AffectedOf(b.set, waiting)
}
