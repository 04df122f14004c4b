package serverlimit

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// arrivalsAt makes a set of requests that arrive at some times, in seconds, and take a second each.
func arrivalsAt(times []float64) *request.Set {
	s := &request.Set{}
	for _, t := range times {
		at := trace.Time(t*1e9) + 1
		s.Requests = append(s.Requests, request.Request{Start: at, End: at + 1e9, Status: request.Finished})
	}
	return s
}

// Five requests arrive per second for 300 s. In addition, 80 arrive at once at 100 s; or 40 at once every 40 s from 100 s on; or three times as
// many for 12 s every 40 s from 60 s on; or batches of up to 9 all the time; or 80 at once, and three times as many from then on.
func TestCrowds(t *testing.T) {
	for _, c := range []struct {
		what  string
		add   func(at float64, r *rand.Rand) int // requests in addition, per tenth of a second
		n     int
		first float64
		every float64
	}{
		{"once", func(at float64, _ *rand.Rand) int { return map[bool]int{true: 80}[at == 100] }, 1, 100, 0},
		{"every 40 s", func(at float64, _ *rand.Rand) int { return map[bool]int{true: 40}[at >= 100 && math.Mod(at, 40) == 20] }, 5, 100, 40},
		{"for 12 s", func(at float64, _ *rand.Rand) int {
			return map[bool]int{true: 1}[at >= 60 && math.Mod(at, 40) >= 20 && math.Mod(at, 40) < 32]
		}, 6, 60, 40},
		{"batches", func(at float64, r *rand.Rand) int { return map[bool]int{true: r.IntN(10)}[r.IntN(20) == 0] }, 0, 0, 0},
		{"and more from then on", func(at float64, _ *rand.Rand) int {
			return map[bool]int{true: 80}[at == 100] + map[bool]int{true: 1}[at > 100]
		}, 0, 0, 0},
	} {
		r := rand.New(rand.NewPCG(9, 9))
		var times []float64
		for k := range 3000 {
			at := float64(k) / 10
			for range c.add(at, r) {
				times = append(times, at)
			}
			if r.IntN(2) == 0 {
				times = append(times, at+r.Float64()/10)
			}
		}
		got := FindCrowds(arrivalsAt(times))
		if len(got.list) != c.n || math.Abs(got.every-c.every) > 0.5 {
			t.Errorf("%s: %d crowds every %g s, want %d every %g s", c.what, len(got.list), got.every, c.n, c.every)
			continue
		}
		if c.n == 0 {
			continue
		}
		if first := float64(got.list[0].from) / 1e9; math.Abs(first-c.first) > 1.5 || got.otherwise < 4.3 || got.otherwise > 5.7 {
			t.Errorf("%s: the first at %g s, %g /s at other times", c.what, first, got.otherwise)
		}
		if text := got.text(80); c.n == 1 && !strings.HasPrefix(text, "80 requests arrived at once at ") || c.n > 1 && !strings.Contains(text, " times, every 40 s, about ") {
			t.Error(text)
		}
	}
}

// Dumps of two runs that are a decade apart: each has its crowd, and the seconds between them, which are many, take no memory.
func TestCrowdsOfADecade(t *testing.T) {
	const decade = 10 * 365 * 24 * 3600
	var times []float64
	for _, begin := range []float64{0, decade} {
		for k := range 600 {
			times = append(times, begin+float64(k)/5)
		}
		for range 80 {
			times = append(times, begin+100)
		}
	}
	s := arrivalsAt(times)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := FindCrowds(s)
	runtime.ReadMemStats(&after)
	if len(got.list) != 2 || got.every != 0 {
		t.Errorf("%d crowds every %g s, want 2", len(got.list), got.every)
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 100<<20 { // a number for each second is 2.5 GB
		t.Errorf("%d bytes were allocated", bytes)
	}
}
