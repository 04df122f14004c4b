package walk

import (
	"iter"
	"slices"
)

// A PerRank has a T for each rank that was asked for. A stream has few of the ranks of a set,
// which may be thousands: a T for all of them would take memory by streams times ranks. The
// zero value is empty.
type PerRank[T any] struct {
	at    Paged[*T]
	ranks []int32 // that were asked for
}

// At returns what belongs to a rank, which begins as zero.
func (p *PerRank[T]) At(rank int32) *T {
	at := p.at.At(int64(rank))
	if *at == nil {
		*at = new(T)
		p.ranks = append(p.ranks, rank)
	}
	return *at
}

// Find returns what belongs to a rank, nil if it was not asked for.
func (p *PerRank[T]) Find(rank int32) *T {
	if at := p.at.Find(int64(rank)); at != nil {
		return *at
	}
	return nil
}

// All passes the ranks that were asked for, in order.
func (p *PerRank[T]) All() iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		slices.Sort(p.ranks)
		for _, rank := range p.ranks {
			if !yield(rank, p.Find(rank)) {
				return
			}
		}
	}
}
