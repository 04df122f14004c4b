package simulator

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Events come out by time, and by insertion order for equal times, whatever was removed in between.
func TestQueueIsStable(t *testing.T) {
	type thing struct{ at, number int }
	rng := rand.New(rand.NewPCG(1, 2))
	var q Queue[thing]
	var in, out []thing
	for number := range 2000 {
		x := thing{number/4 + rng.IntN(20), number}
		q.Put(int64(x.at), x)
		in = append(in, x)
		for at, ok := q.Next(); ok && at < int64(number/4); at, ok = q.Next() { // no earlier event can follow
			out = append(out, q.Take())
		}
	}
	for _, ok := q.Next(); ok; _, ok = q.Next() {
		out = append(out, q.Take())
	}
	slices.SortStableFunc(in, func(a, b thing) int { return a.at - b.at })
	if !slices.Equal(in, out) {
		t.Error("things came out in another order than sorted by time")
	}
}
