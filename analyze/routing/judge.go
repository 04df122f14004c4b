package routing

import (
	"math/rand/v2"
	"slices"
)

// trials is how often experts are placed at random. With none that gets as much, p is below 0.001.
const trials = 1000

// count finds the rank that got most, and what others wait for it alone. ahead is by rank: how many tokens it
// had more than the one behind it where it was the busiest one, added up.
func (s *Source) count(ahead []float64) {
	s.Hot = 0
	for g := range s.ByRank {
		if s.ByRank[g].Tokens > s.ByRank[s.Hot].Tokens {
			s.Hot = g
		}
	}
	if s.most > 0 {
		s.Single = ahead[s.Hot] / s.most
	}
	if hot := &s.ByRank[s.Hot]; s.EP > 1 && hot.Times >= hotTimes {
		s.P = s.misplaced(hot.Tokens)
	}
}

// misplaced returns how often some rank gets so many tokens if the experts of each layer, with what they got, change
// places at random. That is chance twice over: which tokens came, and that some experts are
// popular, wherever they are. If that is rare, those of one rank are popular for another reason.
func (s *Source) misplaced(tokens float64) float64 {
	type layer struct {
		loads []float64
		ranks []int
	}
	layers := make([]layer, len(s.ByLayer))
	for i := range s.ByLayer {
		x := &s.ByLayer[i]
		for e, at := range x.place.at {
			for _, g := range at {
				layers[i].loads, layers[i].ranks = append(layers[i].loads, x.total[e]/float64(len(at))), append(layers[i].ranks, g)
			}
		}
	}
	const rounded = 1 - 1e-9
	rng := rand.New(rand.NewPCG(1, 1)) // the same input gives the same p
	got, as := make([]float64, s.EP), 1
	for n := range trials {
		clear(got)
		for _, x := range layers {
			rng.Shuffle(len(x.loads), func(a, b int) { x.loads[a], x.loads[b] = x.loads[b], x.loads[a] })
			for i, g := range x.ranks {
				got[g] += x.loads[i]
			}
		}
		if slices.Max(got) >= tokens*rounded {
			as++
		}
		if float64(as) > 2*rarely*trials { // it will not get rare any more
			return float64(as) / float64(n+2)
		}
	}
	return float64(as) / (trials + 1)
}
