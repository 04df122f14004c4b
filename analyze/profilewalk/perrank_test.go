package profilewalk

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// PerRank behaves like a map that iterates in order of ranks.
func TestPerRank(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p PerRank[int]
	want := map[int32]int{}
	for range 10_000 {
		rank := r.Int32N(3) * r.Int32N(2_000)
		want[rank]++
		*p.At(rank)++
	}
	var ranks []int32
	for rank, n := range p.All() {
		if ranks = append(ranks, rank); *n != want[rank] || p.Find(rank) != n {
			t.Fatalf("rank %d has %d, want %d", rank, *n, want[rank])
		}
	}
	if !slices.Equal(ranks, slices.Sorted(maps.Keys(want))) {
		t.Errorf("ranks %v", ranks)
	}
	for rank := range int32(5_000) {
		if _, ok := want[rank]; !ok && p.Find(rank) != nil {
			t.Fatalf("rank %d was never asked for", rank)
		}
	}
}
