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

// Costs is the ledger of what findings cost. It has, for every request that finished or got no answer, its time
// by cause. A finding claims the time that requests would not have taken without it ([finding.Claim]). Later
// findings cannot claim that time again, so all findings together cost no more than there was. Costs are parts of
// the sum of the E2E of the finished requests and the time that the others went on: see [Attributor.Unanswered].
//
// This is a first-order estimate: nothing is replayed. A nil ledger claims nothing.
type Costs struct {
	set                  *request.Set
	finished, unanswered []Attribution // finished requests have the first indexes, unanswered ones follow
	usual                Usual
	total                float64 // ns
	lost                 []bool  // by unanswered request: whether it waited in vain
}

// NewCosts returns a ledger of the finished and attributed requests of a set; usual are their usual times.
func NewCosts(s *request.Set, list []Attribution, usual Usual) *Costs {
	b := &Costs{set: s, finished: list, usual: usual}
	b.addUp(list)
	return b
}

// AddUnanswered adds requests without an answer, from [Attributor.Unanswered].
func (b *Costs) AddUnanswered(list []Attribution) {
	b.unanswered = list
	b.addUp(list)
}

// SetLost sets which requests without an answer waited for a server that hangs or died. Other
// slowdowns of servers can't claim their time.
func (b *Costs) SetLost(requests []int) {
	in := b.setOf(requests)
	b.lost = make([]bool, len(b.unanswered))
	for i := range b.unanswered {
		b.lost[i] = in[b.unanswered[i].Request]
	}
}

// isLost reports whether the i-th request waited for such a server.
func (b *Costs) isLost(i int) bool {
	return b.lost != nil && !b.answered(i) && b.lost[i-len(b.finished)]
}

func (b *Costs) addUp(list []Attribution) {
	for i := range Each(list) {
		spent := list[i].spent()
		b.total += float64(spent.Total())
	}
}

// n returns the number of requests in the ledger, and at returns the i-th.
func (b *Costs) n() int { return len(b.finished) + len(b.unanswered) }

func (b *Costs) at(i int) *Attribution {
	if b.answered(i) {
		return &b.finished[i]
	}
	return &b.unanswered[i-len(b.finished)]
}

// answered reports whether the i-th request has finished.
func (b *Costs) answered(i int) bool { return i < len(b.finished) }

// Part returns ns as a part of all request time.
func (b *Costs) Part(ns float64) float64 {
	if b.total == 0 {
		return 0
	}
	return ns / b.total
}

// spent returns the time of a request by cause, within the selected time. Time that the size
// of the request explains stays in its cause.
func (a *Attribution) spent() Causes {
	var all Causes
	for c := range all {
		all[c] = a.spentOn(Cause(c))
	}
	return all
}

// spentOn returns the time that spent has for one cause.
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

// whole returns the cause under which [Attribution.spent] has the time of c.
func whole(c Cause) Cause {
	switch c {
	case PromptSize, SharedBatch:
		return Prefill
	case OutputLength:
		return Decode
	}
	return c
}

// wholes returns the causes of a list as the ledger has them, each once.
func wholes(causes []Cause) []Cause {
	var out []Cause
	for _, c := range causes {
		if c = whole(c); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// usualFor returns the usual time of cause c, as the ledger has it, for a request like a.
func (b *Costs) usualFor(c Cause, a *Attribution) int64 {
	usual := b.usual.Of(c, a)
	switch c {
	case Prefill:
		usual += a.E2E[PromptSize]
	case Decode:
		usual = max(0, usual) + a.E2E[OutputLength]
	case Siblings: // the client asked for them
		usual = a.E2E[Siblings]
	}
	if a.Partly {
		all := a.spentOn(c) + a.Outside[c]
		usual -= int64(float64(usual) * distribution.Fraction(a.Outside[c], all))
	}
	return max(0, usual)
}

// Beyond claims what some requests, indexes into Set.Requests, took beyond the usual time of each cause.
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

// AllOf claims all the time that some requests spent on some causes.
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

// Lost claims the time that those of some requests without an answer went on for beyond what a
// request usually takes: an answer would have taken that long.
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

// Amounts claims an amount of time of each of some requests, in ns, from the first causes in
// the list that have it. Time of these causes that is claimed already counts toward the amount.
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

// Slower claims the extra time of some requests, in ns, due to slower work: from all causes in the list in
// proportion to their time, if evenly, or from the first ones. If servers became slower twice, both changes
// cost time: such claims add up, in any order. What other findings have claimed counts toward them.
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

// setOf returns, for every request of the set, whether it is in a list.
func (b *Costs) setOf(requests []int) []bool {
	in := memory.Make[bool](len(b.set.Requests))
	for _, r := range requests {
		in[r] = true
	}
	return in
}

// A Span is the time and place in which something differs.
type Span struct {
	From, Until trace.Time // 0 means from the beginning, and to the end
	// Alone is the time until which nothing else makes requests slower, so that the difference can be measured; 0 means Until.
	Alone trace.Time
	At    place.Location
	// Only are the ranks that differ, if only some of those at the place do; nil means all.
	Only []place.Location
}

// Slowed claims a given part of the time that some causes took in a span.
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

// partsOf claims a part of the time of each cause in a span.
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

// take claims a part of what the i-th request spent on a cause in the window. It limits the
// remaining time rather than subtracting, so two findings that saw the same rise claim it once.
func (w *window) take(i int, left []int64, c Cause, part float64) {
	if w.isLost(i) {
		return
	}
	a := w.at(i)
	spent := a.spentOn(c)
	left[c] = min(left[c], spent-int64(float64(spent)*part*w.share(c, a)))
}

// Work is how much work a request has for a cause, in any unit: bytes to transfer, tokens to
// compute. Requests are compared by time per work.
type Work func(a *Attribution, c Cause) float64

// BySize measures prefill work as the usual time for as many tokens, and decode work in
// tokens. For other causes, all requests have the same work.
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

// ByRequest gives all requests the same work: longer answers cost time.
func ByRequest(*Attribution, Cause) float64 { return 1 }

// Uncached claims the part of prefills in a span that would be spared if the given share of prompt tokens were cached.
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

// Risen claims the rise of the time per work of some causes in a span, compared with the same
// place before: the part beyond the mean before. It claims nothing if the rise may be chance.
func (b *Costs) Risen(span Span, work Work, causes ...Cause) finding.Claim {
	causes = wholes(causes)
	w := b.window(span)
	// Partial sums are added in a fixed order, as the last digits depend on it.
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

// sides are the times that causes took before and in a span.
type sides struct{ before, after [Count]pace }

// addTo adds the i-th request to the side that it is on, unless it began before the span and ended in it, or began after
// it. A request without an answer counts only for waits that it had: it says nothing about what would have followed.
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

// rise returns the part of the rate after that is beyond the rate before; 0 if chance may explain it.
func rise(before, after *pace) float64 {
	const surely = 1 // standard errors: more likely than not
	usual, is := before.rate(), after.rate()
	if !(is > usual) || is-usual < surely*math.Hypot(before.deviation(), after.deviation()) {
		return 0
	}
	return 1 - usual/is
}

// A pace adds up the times and the work of some requests.
type pace struct{ time, work, timeTime, timeWork, workWork float64 }

func (p *pace) add(time, work float64) {
	p.time, p.work = p.time+time, p.work+work
	p.timeTime, p.timeWork, p.workWork = p.timeTime+time*time, p.timeWork+time*work, p.workWork+work*work
}

// join adds the sums of other requests.
func (p *pace) join(o *pace) {
	p.time, p.work = p.time+o.time, p.work+o.work
	p.timeTime, p.timeWork, p.workWork = p.timeTime+o.timeTime, p.timeWork+o.timeWork, p.workWork+o.workWork
}

// rate returns the time per work; NaN without work.
func (p *pace) rate() float64 { return distribution.Ratio(p.time, p.work) }

// deviation returns the standard error of the rate.
func (p *pace) deviation() float64 {
	r := p.rate()
	return math.Sqrt(max(0, p.timeTime-2*r*p.timeWork+r*r*p.workWork)) / p.work
}

// A window is a span whose place has been looked up.
type window struct {
	*Costs
	Span
	procs []bool // whether a proc is at the place, by index into Set.Procs; nil means anywhere
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

// has reports whether a request spends its time of a cause at the place.
func (w *window) has(c Cause, a *Attribution) bool {
	if w.procs == nil {
		return true
	}
	proc := a.ProcOf(c)
	return proc != request.None && w.procs[proc]
}

// share returns the part of a request's time of a cause that is in the window. Time that grows
// with every token is spread over the request; anything else is at its start.
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

// WaitsFor claims the time that requests wait for the ranks at a place, and returns these requests.
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
