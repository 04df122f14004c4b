package serverlimit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// randomServer returns requests in all states, each for up to 50 ns within the first 1,000 ns.
func randomServer(rng *rand.Rand) *server {
	v := &server{}
	for of := range numStates {
		for range rng.IntN(60) {
			from := trace.Time(rng.IntN(1000))
			v.intervals[of] = append(v.intervals[of], stateInterval{time: request.Interval{From: from, To: from + 1 + trace.Time(rng.IntN(50))}})
		}
	}
	return v
}

// at counts the requests in a state at a time.
func (v *server) at(of state, t trace.Time) (n int32) {
	for _, h := range v.intervals[of] {
		if h.time.From <= t && t < h.time.To {
			n++
		}
	}
	return n
}

// Segments are contiguous and count the requests in each state, ns by ns. Spells
// cover all waiting, and none begins or ends without any.
func TestSweep(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		v := randomServer(rng)
		all := v.segments()
		for i := range all {
			if i > 0 && all[i].from != all[i-1].to {
				t.Fatalf("segment %d begins at %d, the one before ends at %d", i, all[i].from, all[i-1].to)
			}
			for at := all[i].from; at < all[i].to; at++ {
				for of := range numStates {
					if n := v.at(of, at); n != all[i].n[of] {
						t.Fatalf("at %d, %d are in state %d, want %d", at, all[i].n[of], of, n)
					}
				}
			}
		}
		want, got := int64(0), int64(0)
		for _, h := range v.intervals[queued] {
			want += int64(h.time.To - h.time.From)
		}
		for _, p := range spells(all, queued) {
			got += p.waited()
			if v.at(queued, p.from()) == 0 || v.at(queued, p.to()-1) == 0 || v.at(queued, p.from()-1) != 0 || v.at(queued, p.to()) != 0 {
				t.Errorf("nobody waits at an end of a spell from %d to %d, or somebody beyond", p.from(), p.to())
			}
		}
		if got != want {
			t.Errorf("requests wait for %d ns in spells, want %d", got, want)
		}
	}
}

// A limit ends with its waiting. Later requests that come alone and only shake hands
// briefly are in spells of their own, even if they are frequent enough that no pause
// is long. No two consecutive spells are mostly waiting when taken together.
func TestSpellsAreDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	v := &server{}
	add := func(from, to trace.Time) {
		v.intervals[awaitingCache] = append(v.intervals[awaitingCache], stateInterval{time: request.Interval{From: from, To: to}})
	}
	for at := trace.Time(0); at < 4000; at += 100 {
		add(at, at+300)
	}
	for at := trace.Time(4300); at < 9000; at += 80 + trace.Time(rng.IntN(40)) {
		add(at, at+20)
	}
	list := spells(v.segments(), awaitingCache)
	if p := list[0]; p.from() != 0 || p.to() > 4400 {
		t.Errorf("the limit lasts from %d to %d, want 0 to 4200", p.from(), p.to())
	}
	for i := 1; i < len(list); i++ {
		x, y := &list[i-1], &list[i]
		if pause := y.from() - x.to(); pause < min(x.to()-x.from(), y.to()-y.from()) {
			t.Errorf("spells to %d and from %d are two, with a pause shorter than either", x.to(), y.from())
		}
	}
}

// queueing plays a decode server in which a request occupies one of a number of
// places, from when the server makes room for it until its answer is complete.
func queueing(rng *rand.Rand, places, requests int) *server {
	v := &server{location: place.Location{Scope: place.OneRank, Role: request.Decode}}
	free := make([]trace.Time, places)
	arrival := trace.Time(0)
	add := func(of state, from, to trace.Time, r int) trace.Time {
		v.intervals[of] = append(v.intervals[of], stateInterval{time: request.Interval{From: from, To: to}, request: int32(r)})
		return to
	}
	for r := range requests {
		arrival += trace.Time(rng.IntN(40))
		k := slices.Index(free, slices.Min(free))
		at := arrival
		if free[k] > at {
			at = add(awaitingCache, at, free[k], r)
		}
		at = add(transferring, at, at+10+trace.Time(rng.IntN(200)), r)
		free[k] = add(running, at, at+50+trace.Time(rng.IntN(700)), r)
	}
	return v
}

// If requests wait first for room and then for the batch, because the number of
// running requests is limited, all of that is one limit.
func TestRunningInBothQueues(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const places, taken = 5, 12 // running requests, and requests with room
	v := &server{location: place.Location{Scope: place.OneRank, Role: request.Decode}}
	run, room := make([]trace.Time, places), make([]trace.Time, taken)
	want, arrival := int64(0), trace.Time(0)
	add := func(of state, from, to trace.Time, r int) {
		if from < to {
			v.intervals[of] = append(v.intervals[of], stateInterval{time: request.Interval{From: from, To: to}, request: int32(r)})
			if of == awaitingCache || of == queued {
				want += int64(to - from)
			}
		}
	}
	for r := range 400 {
		arrival += trace.Time(rng.IntN(160))
		at, batch := slices.Index(room, slices.Min(room)), slices.Index(run, slices.Min(run))
		admitted := max(arrival, room[at])
		begins := max(admitted, run[batch])
		add(awaitingCache, arrival, admitted, r)
		add(queued, admitted, begins, r)
		run[batch] = begins + 100 + trace.Time(rng.IntN(700))
		add(running, begins, run[batch], r)
		room[at] = run[batch]
	}
	list := v.limits(1)
	if len(list) != 1 || list[0].Kind != Running || list[0].StuckAt != places {
		t.Fatalf("%+v", list)
	}
	if l := list[0]; l.Waited > want || float64(l.Waited) < 0.9*float64(want) {
		t.Errorf("requests wait for %d ns, want nearly all of %d", l.Waited, want)
	}
}

// A decode server with a fixed number of places is stuck at that number, however many requests run.
func TestSlots(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		places := 6 + rng.IntN(15)
		v := queueing(rng, places, 400)
		list := v.limits(1)
		if len(list) != 1 || list[0].Kind != Slots || list[0].StuckAt != places {
			t.Fatalf("%d places: %+v", places, list)
		}
		want := int64(0)
		for _, h := range v.intervals[awaitingCache] {
			want += int64(h.time.To - h.time.From)
		}
		if l := list[0]; l.Waited > want || float64(l.Waited) < 0.9*float64(want) {
			t.Errorf("%d places: requests wait for %d ns, want nearly all of %d", places, l.Waited, want)
		}
	}
}

// The most common number has the largest weight, and the bounds cut off a twentieth at each end.
func TestWeights(t *testing.T) {
	w := weights{1: 4, 2: 6, 5: 50, 7: 36, 9: 4}
	if n := w.usual(); n != 5 {
		t.Errorf("usual: %d, want 5", n)
	}
	if fewest, greatest := w.bounds(); fewest != 2 || greatest != 7 {
		t.Errorf("bounds: %d to %d, want 2 to 7", fewest, greatest)
	}
	if n := (weights{3: 1, 2: 1}).usual(); n != 2 {
		t.Errorf("usual of two: %d, want 2", n)
	}
}
