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

// This file has the changes that can be made to a plan. Each returns how much it changed; 0 is nothing.

// at reports whether an engine is at a place: everywhere, a role, or a single rank.
func (e *Engine) at(w *place.Location) bool { return w.Overlaps(&e.Location) }

// In returns the engines at a place that lead a team, as indexes into Run.Engines.
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

// OnTime makes the ranks at a place end their steps, from since on, no later than the last of the other ranks. It
// returns the number of steps in which others waited for them.
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

// AsPeers gives engines the step times of the others of their group, from since on. It returns the number of engines
// changed, which excludes those without peers.
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

// pooled returns the timing of several engines together. It is fitted only once, because a sweep asks for it
// repeatedly.
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

// then returns a timing that is t until since and next from then on.
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

// AsBefore gives the engines at a place, between since and until, the step times from before since; an until of 0 is
// the end. It returns the number of these engines.
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

// FewSteps is the fewest steps that a model needs.
const FewSteps = 30

// repeated returns a timing whose steps between since and until are those of before, repeated.
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

// Reroute changes how requests are spread over the groups of some engines, from since on.
func (r *Run) Reroute(p *Plan, engines []int, how Route, since trace.Time) {
	for _, i := range engines {
		p.Routes[r.Engines[i].Group] = Routing{how, since}
	}
}

// Routed returns the routing that best explains where the requests of a group went before a time: round robin, least
// loaded, or random.
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
		after[s] = make([]int, len(servers)) // how often each server followed each other one
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

// inTurn returns how often the next server was the usual successor of the previous one, given how often each followed
// each. It returns 0 unless these successors are a permutation of the servers. A router may cycle through its servers
// in any order.
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

// TypicalTransfers limits every KV transfer to the time that its size explains. It returns the number of transfers
// that took clearly longer.
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

// Evenly spreads a burst of requests that begins at about since: it stretches the time between their arrivals to the
// rate from before, which also delays the requests after the burst. It returns the ratio of the two rates, or 0 if
// there is no burst beyond chance.
func (r *Run) Evenly(p *Plan, since trace.Time) float64 {
	first := sort.Search(len(r.Requests), func(i int) bool { return r.Requests[i].Arrival >= since })
	if first < FewSteps || first == len(r.Requests) {
		return 0
	}
	const around = 20 // number of requests before and after since at which the burst may begin
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

// densest returns the range of requests that arrived faster than those before, and the ratio of the rates. It
// maximizes the likelihood of two Poisson processes over that of one (a scan statistic). begin is between lo and hi;
// factor is 0 if nothing is beyond chance.
func (r *Run) densest(lo, hi int) (begin, end int, factor float64) {
	const sure = 8 // nats: a chance below 1 in 1000 for this many beginnings and ends
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

// Scale multiplies the time of steps of a kind.
func (p *Plan) Scale(k Kind, factor float64) {
	for i := range p.Servers {
		p.Servers[i].timing[k].scale *= factor
	}
}

// limit changes the limits of all servers.
func (p *Plan) limit(change func(l *limits)) {
	for i := range p.Servers {
		change(&p.Servers[i].limits)
	}
}

// UnlimitedKV removes all waits for KV cache and all retractions.
func (p *Plan) UnlimitedKV() { p.limit(func(l *limits) { l.kv = unlimited }) }

// KV multiplies the size of the KV caches. It reports whether any request ever waited for KV cache.
func (p *Plan) KV(factor float64) (waited bool) {
	p.limit(func(l *limits) { waited = l.scaleKV(factor) || waited })
	return waited
}

// Chunk sets the most prompt tokens that a step computes.
func (p *Plan) Chunk(tokens int64) { p.limit(func(l *limits) { l.chunk = tokens }) }

// MaxRunning sets the most requests that a batch decodes.
func (p *Plan) MaxRunning(n int64) { p.limit(func(l *limits) { l.running = n }) }

// Servers replays n servers of a role, each a copy of one of the recorded ones, with the requests spread over them.
// It returns the recorded number.
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
	for i, at := range own { // switched off, not removed, because others refer to them by index
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
