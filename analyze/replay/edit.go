package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// What can be changed in a plan. Each returns how much of it there was to change: 0 is nothing.

// at tells whether an engine is at a place: everywhere, in a role, or one of its ranks.
func (e *Engine) at(w *place.Location) bool { return w.Overlaps(&e.Location) }

// In returns the engines at a place, by index, that lead others.
func (r *Run) In(at *place.Location) (list []int) {
	team := *at
	if team.Scope == place.OneRank {
		team = team.Team()
	}
	for i := range r.Engines {
		if e := &r.Engines[i]; e.Leads && len(e.Steps) > 0 && e.at(&team) {
			list = append(list, i)
		}
	}
	return list
}

// OnTime lets the ranks at a place end their steps when the last of the others does, from a time
// on. It returns in how many steps others waited for them.
func (r *Run) OnTime(p *Plan, at *place.Location, since trace.Time) (n int) {
	late := make([]bool, len(r.ranks.Places))
	for i := range late {
		late[i] = at.Overlaps(&r.ranks.Places[i])
	}
	for i := range p.Servers {
		s := &p.Servers[i]
		next := [kinds]int{}
		for k := range kinds {
			t := &s.timing[k]
			t.off, t.lead = slices.Clone(t.off), slices.Clone(t.lead)
		}
		for _, st := range r.Engines[s.Engine].Steps {
			t := &s.timing[st.Kind]
			at := next[st.Kind]
			next[st.Kind]++
			if st.Start < since || st.second == math.MinInt32 || !late[st.worst] {
				continue
			}
			saved := min(int64(st.last)-int64(st.second), st.took()-1)
			t.off[at] *= 1 - float64(saved)/float64(st.took())
			t.lead[at] = max(0, t.lead[at]-saved)
			n++
		}
	}
	return n
}

// AsPeers gives engines the steps of the others of their group, from a time on. It returns how
// many engines these are; none without peers that do the same.
func (r *Run) AsPeers(p *Plan, engines []int, since trace.Time) (n int) {
	for i := range p.Servers {
		s := &p.Servers[i]
		if !slices.Contains(engines, s.Engine) {
			continue
		}
		var peers []int
		for k := range r.Engines {
			if e := &r.Engines[k]; e.Leads && e.Group == s.Group && !slices.Contains(engines, k) && len(e.Steps) > 0 {
				peers = append(peers, k)
			}
		}
		if len(peers) == 0 {
			continue
		}
		n++
		for k := range kinds {
			if t := r.pooled(peers, k); len(t.off) > 0 {
				s.timing[k] = s.timing[k].then(t, since)
			}
		}
	}
	return n
}

// pooled returns the timing of some engines together. It is fitted once: a sweep asks for it again and again.
func (r *Run) pooled(engines []int, k Kind) timing {
	key := fmt.Sprint(k, engines)
	if t, ok := r.pools[key]; ok {
		return t
	}
	n := order.Sum(engines, func(i int) int { return len(r.Engines[i].Steps) })
	steps := make([]Step, 0, n)
	for _, i := range engines {
		for _, st := range r.Engines[i].Steps {
			if st.Kind == k {
				steps = append(steps, st)
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Start, b.Start) })
	t := newTiming(steps)
	r.pools[key] = t
	return t
}

// then returns a timing as it is until a time, and another one from then on.
func (t timing) then(next timing, since trace.Time) timing {
	if since == 0 || len(t.off) == 0 {
		return next
	}
	out := timing{model: next.model, scale: t.scale}
	for i := range t.off {
		if t.starts[i] < since {
			out.add(t.starts[i], t.off[i], t.lead[i], &t.model)
		}
	}
	for i := range next.off {
		if next.starts[i] >= since {
			out.add(next.starts[i], next.off[i], next.lead[i], &next.model)
		}
	}
	return out
}

func (t *timing) add(start trace.Time, off float64, lead int64, m *Model) {
	t.starts, t.off, t.lead, t.models = append(t.starts, start), append(t.off, off), append(t.lead, lead), append(t.models, m)
}

// AsBefore gives the engines at a place, from a time until another, the steps that they took
// before; 0 is to the end. It returns how many engines these are.
func (r *Run) AsBefore(p *Plan, at *place.Location, since, until trace.Time) (n int) {
	engines := r.In(at)
	for i := range p.Servers {
		s := &p.Servers[i]
		if !slices.Contains(engines, s.Engine) {
			continue
		}
		n++
		for k := range kinds {
			before := order.Only(r.Engines[s.Engine].Steps, func(st Step) bool { return st.Kind == k && st.Done <= since })
			if len(before) < FewSteps {
				continue
			}
			t := newTiming(before)
			s.timing[k] = s.timing[k].repeated(t, since, until)
		}
	}
	return n
}

// FewSteps is how many steps a model needs.
const FewSteps = 30

// repeated returns a timing whose steps from a time until another are those of before, again and
// again.
func (t timing) repeated(before timing, since, until trace.Time) timing {
	out := timing{model: before.model, scale: t.scale}
	n := 0
	for i := range t.off {
		if at := t.starts[i]; at < since || until != 0 && at >= until {
			out.add(at, t.off[i], t.lead[i], &t.model)
			continue
		}
		out.add(t.starts[i], before.off[n%len(before.off)], before.lead[n%len(before.off)], &before.model)
		n++
	}
	return out
}

// Reroute spreads the requests of the groups of some engines in another way, from a time on.
func (r *Run) Reroute(p *Plan, engines []int, how Route, since trace.Time) {
	for _, i := range engines {
		p.Routes[r.Engines[i].Group] = Routing{how, since}
	}
}

// Routed tells which way of spreading requests over a group explains best where they went before
// a time: in turn, to the least loaded, or at random.
func (r *Run) Routed(group int32, before trace.Time) Route {
	var servers []int32
	index := map[int32]int{}
	for i := range r.Engines {
		if e := &r.Engines[i]; e.Group == group && e.Leads {
			index[int32(i)] = len(servers)
			servers = append(servers, int32(i))
		}
	}
	if len(servers) < 2 {
		return RoundRobin
	}
	open, after := make([][]trace.Time, len(servers)), make([][]int, len(servers))
	for s := range after {
		after[s] = make([]int, len(servers)) // how often each other one was next
	}
	last, least, n := -1, 0, 0
	for i := range r.allRequests() {
		q := &r.Requests[i]
		if before != 0 && q.Arrival >= before {
			break
		}
		for _, k := range q.jobs {
			if k == None || r.Engines[r.jobs[k].engine].Group != group {
				continue
			}
			at, ok := index[r.jobs[k].engine]
			if !ok {
				continue
			}
			fewest := math.MaxInt
			for s := range open {
				open[s] = slices.DeleteFunc(open[s], func(t trace.Time) bool { return t <= q.Arrival })
				fewest = min(fewest, len(open[s]))
			}
			if n++; last >= 0 {
				after[last][at]++
			}
			if len(open[at]) == fewest {
				least++
			}
			last = at
			open[at] = append(open[at], max(r.jobs[k].last, q.Arrival))
		}
	}
	const most = 0.8
	switch {
	case n > 0 && float64(inTurn(after)) >= most*float64(n):
		return RoundRobin
	case n > 0 && float64(least) >= 0.95*float64(n):
		return MinLoaded
	}
	return Random
}

// inTurn returns how often the server was next that mostly is after the one before, given how often each one was
// next after each other; 0 if these are not all of them, each once. Nobody knows in which order a router has them.
func inTurn(after [][]int) (turns int) {
	next := map[int]bool{}
	for s, counts := range after {
		most := slices.Max(counts)
		at := slices.Index(counts, most)
		if turns += most; at == s || next[at] {
			return 0
		}
		next[at] = true
	}
	return turns
}

// TypicalTransfers lets no KV cache take longer than its size explains. It returns how many do.
func (r *Run) TypicalTransfers(p *Plan, at *place.Location, since trace.Time) (n int) {
	for i := range r.allJobs() {
		j := &r.jobs[i]
		if j.role != request.Decode || j.peer == None || r.Requests[j.request].Arrival < since {
			continue
		}
		if at.Scope == place.OneRank && !r.Engines[j.engine].at(at) && !r.Engines[r.jobs[j.peer].engine].at(at) {
			continue
		}
		usual := r.sizes.Expected(int64(j.prompt))
		if usual > 0 && p.Sent[i] > usual {
			if p.Sent[i] > 2*usual+handling {
				n++
			}
			p.Sent[i] = usual
		}
	}
	return n
}

// Evenly lets the requests of a burst that begins at about a time arrive at the rate of before: the time
// between them is stretched, so that the same requests arrive, and those after it come later. It
// returns how many times as many came as before; 0 if there is no burst beyond chance.
func (r *Run) Evenly(p *Plan, since trace.Time) float64 {
	first := sort.Search(len(r.Requests), func(i int) bool { return r.Requests[i].Arrival >= since })
	if first < FewSteps || first == len(r.Requests) {
		return 0
	}
	const around = 20 // requests before and after the time at which it may begin
	begin, end, factor := r.densest(max(FewSteps, first-around), min(first+around, len(r.Requests)-1))
	if factor == 0 {
		return 0
	}
	from, length := r.Requests[begin].Arrival, r.Requests[end].Arrival-r.Requests[begin].Arrival
	for i := begin; i < len(r.Requests); i++ {
		p.Arrivals[i] += trace.Time((factor - 1) * float64(min(r.Requests[i].Arrival-from, length)))
	}
	return factor
}

// densest finds between which arrivals more requests came than before, and how many times as many: where
// the likelihood of two Poisson processes is farthest above that of one (a scan statistic). The first
// arrival is one of some; factor is 0 if nothing is beyond chance.
func (r *Run) densest(lo, hi int) (begin, end int, factor float64) {
	const sure = 8 // nats: a chance below 1 in 1000 with this many beginnings and ends
	best := float64(sure)
	for b := lo; b <= hi; b++ {
		rate := float64(b) / float64(r.Requests[b].Arrival-r.From)
		for e := b + FewSteps/2; e < len(r.Requests); e++ {
			n, usual := float64(e-b), rate*float64(r.Requests[e].Arrival-r.Requests[b].Arrival)
			if usual <= 0 || n <= usual {
				continue
			}
			if gain := n*math.Log(n/usual) - (n - usual); gain > best {
				best, begin, end, factor = gain, b, e, n/usual
			}
		}
	}
	return begin, end, factor
}

// Scale multiplies the time of steps.
func (p *Plan) Scale(k Kind, factor float64) {
	for i := range p.Servers {
		p.Servers[i].timing[k].scale *= factor
	}
}

// limit changes what servers hold at most.
func (p *Plan) limit(change func(l *limits)) {
	for i := range p.Servers {
		change(&p.Servers[i].limits)
	}
}

// UnlimitedKV lets nobody wait for KV cache, and nothing be retracted.
func (p *Plan) UnlimitedKV() { p.limit(func(l *limits) { l.kv = unlimited }) }

// KV multiplies the size of the KV cache. It reports whether anybody ever waited for it.
func (p *Plan) KV(factor float64) (waited bool) {
	p.limit(func(l *limits) { waited = l.scaleKV(factor) || waited })
	return waited
}

// Chunk sets how many tokens of prompts a step computes at most.
func (p *Plan) Chunk(tokens int64) { p.limit(func(l *limits) { l.chunk = tokens }) }

// MaxRunning sets how many requests a batch decodes at most.
func (p *Plan) MaxRunning(n int64) { p.limit(func(l *limits) { l.running = n }) }

// Servers plays n servers of a role instead of those there are, each like one of these, and
// spreads the requests over them. It returns how many there were.
func (r *Run) Servers(p *Plan, role request.Role, n int, how Route) int {
	var own, engines []int
	for i := range p.Servers {
		s := &p.Servers[i]
		if e := &r.Engines[s.Engine]; s.Role == role && e.Leads && len(e.Steps) > 0 {
			own, engines = append(own, i), append(engines, s.Engine)
		}
	}
	if len(own) == 0 {
		return 0
	}
	pool := [kinds]timing{}
	for k := range kinds {
		pool[k] = r.pooled(engines, k)
		pool[k].scale = p.Servers[own[0]].timing[k].scale
	}
	for i, at := range own { // others know them by their places
		p.Servers[at].Off = i >= n
	}
	for i := len(own); i < n; i++ {
		s := p.Servers[own[i%len(own)]]
		s.timing, s.Off = pool, false
		p.Servers = append(p.Servers, s)
	}
	r.Reroute(p, engines, how, 0)
	return len(own)
}
