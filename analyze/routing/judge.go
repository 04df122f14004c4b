package routing

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// fewObserved is how many layers, or else layers of passes, it takes to see how much a rank differs from one
// to the other.
const fewObserved = 8

// A share adds up what a rank got in some layers, by the mean of all ranks.
type share struct{ n, sum, squares float64 }

func (s *share) add(v float64) { s.n, s.sum, s.squares = s.n+1, s.sum+v, s.squares+v*v }

// p is the probability that a rank which gets no more than others does so by chance: by Student's test.
func (s *share) p() float64 {
	mean := s.sum / s.n
	variance := max(0, s.squares/s.n-mean*mean) * s.n / (s.n - 1)
	switch {
	case mean <= 1:
		return 1
	case variance == 0:
		return 0
	}
	return distuv.StudentsT{Sigma: 1, Nu: s.n - 1}.Survival((mean - 1) / math.Sqrt(variance/s.n))
}

// count finds the rank that got most, and what others wait for it alone. ahead is by rank.
func (s *Source) count(ahead []lead) {
	s.Hot = 0
	for g := range s.ByRank {
		if s.ByRank[g].Tokens > s.ByRank[s.Hot].Tokens {
			s.Hot = g
		}
	}
	hot := &ahead[s.Hot]
	if s.most > 0 {
		s.Single = hot.by / s.most
	}
	var layers share
	for i := range s.ByLayer {
		x := &s.ByLayer[i]
		layers.add(x.ranks[s.Hot] * float64(s.EP) / sum(x.ranks))
	}
	// Layers are observations of where experts are: experts are hot in one layer and not in another. With few
	// layers, it is said of these layers alone, and passes are the observations. A single pass has tokens.
	switch {
	case s.EP < 2 || s.Tokens == 0:
		s.P = 1
		return
	case s.Layers >= fewObserved:
		s.P = layers.p()
	case hot.n >= fewObserved:
		s.P = hot.p()
	default:
		mean := float64(s.Tokens) / float64(s.EP)
		s.P = distuv.UnitNormal.Survival((s.ByRank[s.Hot].Tokens - mean) / math.Sqrt(mean*(1-1/float64(s.EP))))
	}
	s.P = min(1, s.P*float64(s.EP)) // any rank might be the one
}
