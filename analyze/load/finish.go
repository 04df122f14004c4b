package load

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// finish makes the series: everywhere, then every role with its ranks.
func (b *timelineBuilder) finish() {
	b.all.level(b.Timeline, 0)
	for i := range b.all.points {
		p := &b.all.points[i]
		p.Queued, p.Transferring, p.Busy = math.NaN(), math.NaN(), math.NaN()
	}
	all := b.series(b.all)
	all.TTFT, all.TPOT = spreads(b.N(), b.all.ttft), spreads(b.N(), b.all.tpot)
	b.Series = append(b.Series, all)
	for _, role := range request.ServingRoles {
		var of, leads []*meter
		most := 0
		for _, m := range b.meters {
			if m.Role == role && m.parts > 0 {
				of = append(of, m)
				most = max(most, MostAtOnce(m.computing))
			}
		}
		for _, m := range of {
			m.level(b.Timeline, most)
			if m.lead {
				leads = append(leads, m)
			}
		}
		if len(of) == 0 {
			continue
		}
		whole := b.roles[role]
		b.sumUp(whole, leads)
		b.Series = append(b.Series, b.series(whole, of...))
		for _, m := range of {
			b.Series = append(b.Series, b.series(m))
		}
	}
	addTokensOf(b.all, b.roles[:])
}

// level turns what was summed up into means, given how many requests ran at once at most on
// a place like it.
func (m *meter) level(t *Timeline, most int) {
	var totals [noState][]int64
	for s, l := range m.loads {
		totals[s] = l.Totals()
	}
	addUnion(m.busy, m.computing)
	m.computing = nil
	busy := m.busy.Totals()
	for i := range m.points {
		from, to := t.Bounds(i)
		ns := float64(to - from)
		p := &m.points[i]
		p.Running = distribution.Ratio(float64(totals[StateRunning][i]), ns)
		p.Queued = distribution.Ratio(float64(totals[stateQueued][i]), ns)
		p.Transferring = distribution.Ratio(float64(totals[stateTransferring][i]), ns)
		p.Busy = Busy(m.Role, p.Running, distribution.Ratio(float64(busy[i]), ns), most)
		p.Share, p.Imbalance = math.NaN(), math.NaN()
		if !m.prompts {
			p.Prefill = request.Unknown
		}
	}
}

// sumUp makes the points of a role of its lead ranks, and tells these their
// shares.
func (b *timelineBuilder) sumUp(role *meter, leads []*meter) {
	for i := range role.points {
		p := &role.points[i]
		p.Share, p.Imbalance, p.Prefill = math.NaN(), math.NaN(), request.Unknown
		most := 0.0
		for _, m := range leads {
			of := &m.points[i]
			p.Running += of.Running
			p.Queued += of.Queued
			p.Transferring += of.Transferring
			p.Busy += of.Busy / float64(len(leads))
			p.Output += of.Output
			if of.Prefill != request.Unknown {
				p.Prefill = max(0, p.Prefill) + of.Prefill
			}
			most = max(most, of.Running)
		}
		if len(leads) < 2 {
			continue
		}
		p.Imbalance = distribution.Ratio(most*float64(len(leads)), p.Running)
		for _, m := range leads {
			m.points[i].Share = distribution.Ratio(float64(m.points[i].Arrivals), float64(p.Arrivals))
		}
	}
}

// addTokensOf adds the tokens of all roles.
func addTokensOf(all *meter, roles []*meter) {
	for i := range all.points {
		p := &all.points[i]
		p.Prefill = request.Unknown
		for _, m := range roles {
			p.Output += m.points[i].Output
			if prefill := m.points[i].Prefill; prefill != request.Unknown {
				p.Prefill = max(0, p.Prefill) + prefill
			}
		}
	}
}

// series makes a series of a place, with the stages of the places that it consists of.
func (b *timelineBuilder) series(m *meter, of ...*meter) Series {
	s := Series{Where: m.Where, Points: m.points, Stages: make([][]Spread, len(m.stages)), Lead: m.lead}
	for k := range m.stages {
		samples := [][]timed{m.stages[k]}
		for _, part := range of {
			samples = append(samples, part.stages[k])
		}
		s.Stages[k] = spreads(b.N(), samples...)
	}
	return s
}

// spreads sums up lists of samples by bucket; nil if there are none.
func spreads(buckets int, lists ...[]timed) []Spread {
	next := make([]int, buckets+1) // where the next one of a bucket goes
	total := 0
	for _, samples := range lists {
		total += len(samples)
		for _, s := range samples {
			next[s.bucket+1]++
		}
	}
	if total == 0 {
		return nil
	}
	for i := range buckets {
		next[i+1] += next[i]
	}
	sorted := memory.Make[int64](total)
	for _, samples := range lists {
		for _, s := range samples {
			sorted[next[s.bucket]] = s.ns
			next[s.bucket]++
		}
	}
	out := make([]Spread, buckets)
	from := 0
	for i := range out {
		of := sorted[from:next[i]]
		from = next[i]
		if len(of) > 0 {
			slices.Sort(of)
			out[i] = Spread{N: len(of), P50: request.NearestRank(of, 50), P99: request.NearestRank(of, 99)}
		}
	}
	return out
}
