package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for n := range 40 {
		var streams []*[]int
		var want, got []int
		for range n {
			s := make([]int, 1+rng.IntN(20))
			for i := range s {
				s[i] = rng.IntN(100)
			}
			slices.Sort(s)
			want = append(want, s...)
			streams = append(streams, &s)
		}
		slices.Sort(want)
		Merge(streams, func(a, b *[]int) bool { return (*a)[0] < (*b)[0] },
			func(s *[]int) bool { *s = (*s)[1:]; return len(*s) > 0 },
			func(s *[]int) { got = append(got, (*s)[0]) })
		if !slices.Equal(got, want) {
			t.Fatalf("%d streams: %v, want %v", n, got, want)
		}
	}
}
