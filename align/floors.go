package align

import (
	"math"
	"slices"
)

// Where in a band the true line lies, nobody can know: a message takes some time at least, its
// floor, and only the sum of the floors of both directions shows. What can be known is how near
// to its floor the shortest delay of a direction came. Near a floor there are about as many
// delays in one stretch as in the next, so the shortest of n is as far above the floor as the
// next ones are apart, on average. The floors of both directions are taken to be equal, as for
// NTP, up to what a hop between hosts takes; what is beyond that is not the network's, and is
// divided as the shortest delays are apart. A direction of few and uneven delays has
// most of it then, and one in which many are about equal has next to none.
const (
	// hop is about what a message takes at least from one process to one of another host, in ns.
	hop = 250_000
	// lowest is of how many of the shortest delays the distances are looked at.
	lowest = 8
	// leastApart is how exactly a floor can be told at all, in ns: clocks of processes are
	// calibrated to about that.
	leastApart = 1000
)

// settle moves the line from the middle of the band to where the floors are, and widens its error
// so that it still covers all of the band.
func (f *bandLine) settle(los, his []point) {
	up, down := f.apart(los, -1), f.apart(his, 1)
	width := 2 * f.Err
	rest := max(0, width-up-down)
	if rest > 2*hop {
		beyond := rest - 2*hop
		up, down = up+beyond*up/(up+down), down+beyond*down/(up+down)
	} else if up+down > width {
		up, down = width*up/(up+down), width*down/(up+down)
	}
	f.Loose = math.Abs(up - down)
	by := (up - down) / 2
	f.Off += int64(math.Round(by))
	f.Err += math.Abs(by)
}

// apart is how far the lowest of some limits are from each other, on average, on the side of the
// line that sign tells.
func (f *bandLine) apart(list []point, sign float64) float64 {
	low := make([]float64, 0, lowest+1)
	for _, p := range list {
		v := sign * (p.v - f.Slope*p.t)
		k, _ := slices.BinarySearch(low, v)
		if k < lowest {
			low = slices.Insert(low, k, v)
			low = low[:min(len(low), lowest)]
		}
	}
	if len(low) < 2 {
		return math.Max(leastApart, f.Err) // a single one shows nothing of its floor
	}
	return max(leastApart, (low[len(low)-1]-low[0])/float64(len(low)-1))
}
