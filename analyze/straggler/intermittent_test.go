package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// occasions plays steps of four ranks in which TP2 is late in the given steps, by 0.3 to 0.5 of a step.
func occasions(seed uint64, syncPoints int, late func(m int) bool) *SyncSamples {
	rng := rand.New(rand.NewPCG(seed, 4))
	g := gathered(seed, 4, syncPoints, noises["uniform"], func(r, m int) float64 {
		return b2f(r == 2 && late(m)) * (0.3 + 0.2*rng.Float64())
	})
	g.Intermittent = true
	return g
}

// stepTime returns the time of step m in gathered; the first one is at 0.
func stepTime(m int) trace.Time {
	if m == 0 {
		return 0
	}
	return trace.Time(m+1) * stepLength
}

// A rank that is late in some steps is reported with how often, by how much, since
// when, and what these steps have in common.
func TestOccasionalStragglers(t *testing.T) {
	const n = 1211
	rng := rand.New(rand.NewPCG(1, 1))
	var random, bursts [n]bool
	for m := range n {
		random[m], bursts[m] = rng.IntN(7) == 0, rng.IntN(8) == 0
	}
	for _, c := range []struct {
		late func(m int) bool
		when string
	}{
		{func(m int) bool { return random[m] }, "at random"},
		{func(m int) bool { return bursts[m/6] }, "in bursts of "},
		{func(m int) bool { return m%16 < 2 }, ", in bursts of 2 steps on average"},
		{func(m int) bool { return m >= 600 && random[m] }, "at random"},
	} {
		planted, since := 0, 0
		is := make([]bool, n)
		for m := range is {
			if is[m] = c.late(m); is[m] {
				if planted++; planted == 1 && m > n/4 {
					since = m
				}
			}
		}
		found := occasions(5, n, func(m int) bool { return is[m] }).Stragglers()
		if len(found) != 1 || found[0].Rank != 2 || found[0].Intermittent == nil {
			t.Errorf("%s: %+v", c.when, found)
			continue
		}
		s, o := &found[0], found[0].Intermittent
		if math.Abs(float64(o.Steps-planted)) > 2 {
			t.Errorf("%s: %d steps, want %d", c.when, o.Steps, planted)
		}
		if o.Low < 2_500_000 || o.High > 5_500_000 || o.High < o.Low+1_000_000 {
			t.Errorf("%s: late by %d to %d ns, want 3 to 5 ms, give or take what others are", c.when, o.Low, o.High)
		}
		if !near(s.Since, stepTime(since)) {
			t.Errorf("%s: since %d, want %d", c.when, s.Since, stepTime(since))
		}
		if text := s.Text(); !strings.Contains(text, fmt.Sprintf("TP2 is late in %d of ", o.Steps)) || !strings.Contains(text, c.when) {
			t.Errorf("%s, want %s", text, c.when)
		}
	}
}

// A rank that is late in most steps, or by no more than usual, is not an occasional straggler.
func TestNotOccasional(t *testing.T) {
	for name, late := range map[string]func(m int) bool{
		"always":         func(int) bool { return true },
		"in most":        func(m int) bool { return m%10 != 0 },
		"in the middle":  func(m int) bool { return m >= 300 && m < 700 },
		"hardly ever":    func(m int) bool { return m%40 == 0 },
		"in a few steps": func(m int) bool { return m >= 300 && m < 350 },
	} {
		for _, s := range occasions(3, 1000, late).Stragglers() {
			if s.Intermittent != nil {
				t.Errorf("%s: %s", name, s.Text())
			}
		}
	}
}

// Equal ranks have no occasions, whatever interrupts them.
func TestNoOccasionsByChance(t *testing.T) {
	for name, n := range noises {
		alarms := 0
		const runs = 60
		for seed := range uint64(runs) {
			g := gathered(seed, 2<<(seed%3), 300+int(seed), n, nothing)
			g.Intermittent = true
			alarms += len(g.Stragglers())
		}
		if alarms > 1 {
			t.Errorf("%s: %d of %d runs", name, alarms, runs)
		}
	}
}

// A trait is found if lateness occurs with it, but not if both merely have long stretches.
func TestTraits(t *testing.T) {
	const n = 1000
	trait := []Trait{{Phrase: func(least float64) string { return fmt.Sprintf("with %.0f or more", least) }}}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		stretches := func() []float64 { // values from 1 to 8 that last for 20 steps on average
			v, at := make([]float64, n), 1.0
			for i := range v {
				if rng.IntN(20) == 0 {
					at = 1 + float64(rng.IntN(8))
				}
				v[i] = at
			}
			return v
		}
		size, other := stretches(), stretches()
		late := lateSteps{late: make([]bool, n)}
		for i := range n {
			late.at = append(late.at, i)
			late.late[i] = size[i] >= 6 && rng.Float64() < 0.8
		}
		for values, want := range map[*[]float64]bool{&size: true, &other: false} {
			g := NewSyncSamples([]string{"TP0", "TP1"}, 0)
			g.Traits = trait
			for i, v := range *values {
				g.Meet(stepTime(i), []int64{0, 1}, stepLength, v)
			}
			p := g.trait(&late)
			if (p.Trait != nil) != want || want && (p.Least != 6 || p.With < 0.7 || p.With > 0.9 || p.Without != 0) {
				t.Errorf("seed %d: %+v, want it: %v", seed, p, want)
			}
		}
	}
}

// A period is found among events even if some do not follow it, and none is found among random events.
func TestPeriods(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var regular, random []float64
		at := 0.0
		for i := range 60 {
			regular = append(regular, 500*float64(i)+20*rng.NormFloat64())
			if rng.IntN(10) == 0 {
				regular = append(regular, 500*float64(i)+300*rng.Float64()+50)
			}
			at += 500 * rng.ExpFloat64()
			random = append(random, at)
		}
		if got, _ := period(regular, 60); math.Abs(got-500) > 5 {
			t.Errorf("seed %d: a period of %v, want 500", seed, got)
		}
		if got, r := period(random, 60); got != 0 {
			t.Errorf("seed %d: a period of %v (%v) of random events", seed, got, r)
		}
	}
}
