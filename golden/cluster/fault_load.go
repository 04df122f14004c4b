package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// These faults are of what arrives.

// later calls change for the requests that arrive after the fault begins.
func (f *Fault) later(s *sim, change func(q *Request)) {
	for _, q := range s.planned {
		if q.Arrival >= f.since(s) {
			change(q)
		}
	}
}

func longOutputs(s *sim, f *Fault) {
	f.later(s, func(q *Request) {
		if s.run.Config.Pools[q.Pool].Embedding {
			return
		}
		q.Output = min(int(float64(q.Output)*f.Size), s.run.Config.Pools[q.Pool].Output.Max)
		if q.MaxTokens = max(q.MaxTokens, q.Output); q.Stop == "length" {
			q.MaxTokens = q.Output
		}
	})
}

func longPrompts(s *sim, f *Fault) {
	f.later(s, func(q *Request) {
		q.Prompt = min(int(float64(q.Prompt)*f.Size), s.run.Config.Pools[q.Pool].Prompt.Max)
		q.Cached = min(int(float64(q.Cached)*f.Size), q.Prompt-1)
	})
}

func coldCache(s *sim, f *Fault) { f.later(s, func(q *Request) { q.Cached = 0 }) }

func rejectedDrafts(s *sim, f *Fault) {
	s.drafts = append(s.drafts, func() float64 {
		if s.Agenda.Now < f.since(s) {
			return 1
		}
		return f.Share
	})
}

func wave(s *sim, f *Fault) {
	rng := f.rng(s)
	s.planned = slices.DeleteFunc(s.planned, func(q *Request) bool {
		phase := 2 * math.Pi * float64(q.Arrival-f.since(s)) / float64(f.Every)
		return rng.Float64() < f.Size*(1+math.Cos(phase))/2
	})
}

// more plans requests at a rate, until a time or the end of the run.
func (f *Fault) more(s *sim, length time.Duration, change func(q *Request)) {
	rng := f.rng(s)
	end := s.run.Start + int64(s.run.Config.Length)
	if length > 0 {
		end = min(end, f.since(s)+int64(length))
	}
	for n, at := 0, f.since(s); ; n++ {
		if at += int64(rng.ExpFloat64() / f.Size * 1e9); at >= end {
			break
		}
		q := s.request(0, firstFlood+n, at)
		q.Extra = true
		change(q)
		s.planned = append(s.planned, q)
	}
	slices.SortStableFunc(s.planned, func(a, b *Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

func burst(s *sim, f *Fault) { f.more(s, f.Every, func(*Request) {}) }

func flood(s *sim, f *Fault) { f.more(s, 0, func(q *Request) { q.Tenant = firstTenant }) }

func retries(s *sim, f *Fault) {
	rng, n := f.rng(s), 0
	s.retry = func(q *Request) {
		if rng.Float64() >= f.Share || s.Agenda.Now+int64(f.Every) >= s.run.Start+int64(s.run.Config.Length) {
			return
		}
		again := s.request(q.Pool, firstRetry+n, s.Agenda.Now+int64(f.Every))
		n++
		again.Extra = true
		again.Prompt, again.Cached, again.Output, again.MaxTokens, again.Stop, again.Tenant = q.Prompt, q.Cached, q.Output, q.MaxTokens, q.Stop, q.Tenant
		s.Agenda.At(again.Arrival, func() { s.arrive(again) })
	}
}

// These are of what is between the clients and the schedulers.

func gatewayHolds(s *sim, f *Fault) {
	rng := f.rng(s)
	s.holds = append(s.holds, func(q *Request) int64 {
		held, length := rng.Float64() < f.Share, f.Size*(1+rng.Float64())
		if !held || q.Arrival < f.since(s) {
			return 0
		}
		return int64(length * 1e9)
	})
}

func slowTokenizer(s *sim, f *Fault) {
	f.each(s, func(v *server) { s.Agenda.At(f.since(s), func() { v.slow = f.Size }) })
}

func slowPair(s *sim, f *Fault) {
	s.slowWay = append(s.slowWay, func(from, to *server) int64 {
		if s.Agenda.Now < f.since(s) || from.index != f.Server || to.index != f.Other {
			return 0
		}
		return int64(f.Size * 1e9)
	})
}

func clockStep(s *sim, f *Fault) {
	f.each(s, func(v *server) {
		c := &s.run.Hosts[s.run.Servers[v.index].Host].Clock
		c.Step, c.Stepped = int64(f.Size*1e9), f.since(s)
	})
}
