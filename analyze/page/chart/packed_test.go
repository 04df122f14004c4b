package chart

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Durations have the same reading if they print alike, and longer ones have larger readings.
func TestReadings(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	edges := []int64{0, 999, 1000, 999_949, 999_950, 999_999, 1_000_000, 12_125_000, 999_949_999, 999_950_000, 1_000_000_000, 9_999_949_999_999, 9_999_950_000_000, 1e13 - 1, 1e13, 1e17}
	for range 20_000 {
		ns := edges[random.IntN(len(edges))]
		if random.IntN(3) > 0 {
			ns = random.Int64N(1 << random.IntN(55))
		}
		next := ns + random.Int64N(1+ns/2_000)
		a, b := reading(ns), reading(next)
		alike := trace.FormatDuration(ns) == trace.FormatDuration(next)
		if a > b || (a == b) != alike {
			t.Fatalf("%d and %d are printed as %s and %s, and have the readings %d and %d", ns, next, trace.FormatDuration(ns), trace.FormatDuration(next), a, b)
		}
	}
}
