package limit

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// randomServer has requests in all states, for up to 50 ns within the first 1,000.
func randomServer(rng *rand.Rand) *server {
	v := &server{}
	for of := range states {
		for range rng.IntN(60) {
			from := trace.Time(rng.IntN(1000))
			v.held[of] = append(v.held[of], held{Interval: request.Interval{From: from, To: from + 1 + trace.Time(rng.IntN(50))}})
		}
	}
	return v
}

// at counts the requests in a state at a time.
func (v *server) at(of state, t trace.Time) (n int32) {
	for _, h := range v.held[of] {
		if h.From <= t && t < h.To {
			n++
		}
	}
	return n
}

// Segments follow each other and know who is in which state, ns by ns; and spells have all
// of the waiting, and none of them begins or ends without any.
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
				for of := range states {
					if n := v.at(of, at); n != all[i].n[of] {
						t.Fatalf("at %d, %d are in state %d, want %d", at, all[i].n[of], of, n)
					}
				}
			}
		}
		want, got := int64(0), int64(0)
		for _, h := range v.held[queued] {
			want += int64(h.To - h.From)
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

// The usual number has most weight, and the bounds leave out a twentieth at either end.
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
