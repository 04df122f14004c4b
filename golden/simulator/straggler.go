package simulator

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Straggler is a rank of the instance that decodes whose steps take longer.
type Straggler struct {
	// TP, PP, and DP name the rank. Replicas is the number of DP ranks with such a rank, from DP on; 0 means one. The truth is
	// about the first.
	TP, PP, DP, Replicas int
	// Factor multiplies the duration of its slow steps, if it is above 1.
	Factor float64
	// Delay is added to its slow steps: each takes between Delay and 5/3 of it longer. Without Delay, and with a Factor of up
	// to 1, there is no straggler.
	Delay time.Duration
	// AtOnset means that it is slow from the onset of the incident on, and not all the time.
	AtOnset bool
	// Slow selects its slow steps, and Share is their share. Batch is the smallest number of requests in a step of
	// SlowInLargeBatches.
	Slow  Occasion
	Share float64
	Batch int
}

// An Occasion selects the steps in which a straggler is slow.
type Occasion uint8

const (
	SlowAlways         Occasion = iota
	SlowAtRandom                // in any step, independently of the previous one
	SlowInBursts                // in runs of burstSteps consecutive steps on average
	SlowPeriodically            // for a part of each slowPeriod
	SlowInLargeBatches          // in steps of Straggler.Batch requests or more
	SlowAfterPrefills           // in decode steps right after a prefill
)

const (
	burstSteps = 5
	slowPeriod = 500 * ms
)

// planted reports whether there is a straggler.
func (s *Straggler) planted() bool { return s.Factor > 1 || s.Delay > 0 }

// A spell decides in which steps of an engine its straggler is slow. It draws from a stream of its own, so that an
// occasional straggler changes nothing else.
type spell struct {
	rng       *rand.Rand
	bursting  bool
	prefilled bool // the last step was a prefill
}

func newSpell(seed uint64) spell {
	return spell{rng: rand.New(rand.NewPCG(seed, streamStraggler))}
}

// holds reports whether a straggler is slow in the next step, at a time.
func (p *spell) holds(s *Straggler, m ForwardMode, requests int, at int64) bool {
	prefilled := p.prefilled
	p.prefilled = m == ModePrefill
	switch s.Slow {
	case SlowAtRandom:
		return p.rng.Float64() < s.Share
	case SlowInBursts:
		turns := 1. / burstSteps
		if !p.bursting {
			turns *= s.Share / (1 - s.Share)
		}
		if p.rng.Float64() < turns {
			p.bursting = !p.bursting
		}
		return p.bursting
	case SlowPeriodically:
		return float64(at%slowPeriod) < s.Share*float64(slowPeriod)
	case SlowInLargeBatches:
		return requests >= s.Batch
	case SlowAfterPrefills:
		return prefilled && m == ModeDecode
	}
	return true
}

// delay returns how much longer than usual a slow step takes, apart from the factor.
func (p *spell) delay(s *Straggler) int64 {
	if s.Delay == 0 {
		return 0
	}
	return int64(s.Delay) + p.rng.Int64N(int64(s.Delay)*2/3+1)
}

// StragglerTruth is the planted straggler, and its effect on the decode steps of its TP group. With one TP rank, or on an
// early stage of a pipeline, no other rank ends earlier: see LastSteps.
type StragglerTruth struct {
	Host   string  `json:"host"`
	Role   string  `json:"role"`
	Rank   string  `json:"rank"`
	PID    int     `json:"pid"`
	Factor float64 `json:"factor"`
	// OnsetNs is when it became slow; it is omitted if it always was.
	OnsetNs int64 `json:"onset_ns,omitempty"`
	// Steps is the number of decode steps of its group since then, LastSteps of those in which it ended after all its peers,
	// and SlowSteps, for an occasional straggler, of those in which it was slow.
	Steps     int `json:"steps"`
	LastSteps int `json:"last_steps"`
	SlowSteps int `json:"slow_steps,omitempty"`
	// MeanLatenessNs is the mean over Steps of its end minus the median (nearest
	// rank) of the ends of its TP peers; zero without peers.
	MeanLatenessNs int64 `json:"mean_lateness_ns"`
}

func (r *Run) stragglerTruth() *StragglerTruth {
	at := r.Straggler()
	if at < 0 {
		return nil
	}
	p := &r.Processes[at]
	t := &StragglerTruth{
		Host: r.Hosts[p.Host].Name, Role: string(p.Role), Rank: p.Rank.String(), PID: p.PID,
		Factor: r.Config.Straggler.Factor, OnsetNs: r.slowFrom(),
	}
	sum := int64(0)
	for i := range r.Steps {
		if st := &r.Steps[i]; st.Mode == ModeDecode && r.meets(st) {
			late, last := r.lateness(st)
			t.Steps++
			sum += late
			if last > 0 {
				t.LastSteps++
			}
			if r.Config.Straggler.Slow != SlowAlways && st.slow {
				t.SlowSteps++
			}
		}
	}
	if t.Steps > 0 {
		t.MeanLatenessNs = sum / int64(t.Steps)
	}
	return t
}

// slowFrom returns the time from which on the straggler is slow; 0 is always.
func (r *Run) slowFrom() int64 {
	if !r.Config.Straggler.AtOnset {
		return 0
	}
	return r.Onset
}

// meets reports whether the straggler takes part in a step, when it may be slow.
func (r *Run) meets(st *Step) bool {
	s := &r.Config.Straggler
	return s.planted() && st.Instance == len(r.Instances)-1 && st.DP == s.DP && st.Ranks[0].Formed >= r.slowFrom()
}

// lateness returns how long after the median of its TP peers the straggler ended a step, and how long after the last of
// them.
func (r *Run) lateness(st *Step) (median, last int64) {
	s, size := r.Config.Straggler, r.Serving().Size
	if size.TP == 1 {
		return 0, 0
	}
	var peers []int64
	for tp := range size.TP {
		if tp != s.TP {
			peers = append(peers, st.Ranks[s.PP*size.TP+tp].done)
		}
	}
	slices.Sort(peers)
	own := st.Ranks[s.PP*size.TP+s.TP].done
	return own - nearestRank(peers, 50), own - peers[len(peers)-1]
}
