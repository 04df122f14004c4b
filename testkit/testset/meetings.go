package testset

import (
	"cmp"
	"iter"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
)

// Meetings are collectives that are held.
type Meetings struct {
	Points  []profile.SyncPoint // by first arrival
	Kernels []profile.Part      // by rank and start
}

// SyncPoints implements [profile.Meetings].
func (m *Meetings) SyncPoints(bool) iter.Seq[*profile.SyncPoint] {
	return each(m.Points)
}

// Parts implements [profile.Meetings].
func (m *Meetings) Parts() iter.Seq[*profile.Part] {
	return each(slices.SortedStableFunc(slices.Values(m.Kernels), func(a, b profile.Part) int { return cmp.Compare(a.Rank, b.Rank) }))
}

func each[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}
