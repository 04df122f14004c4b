package profile

import (
	"math"
	"testing"
)

// Dense and sparse ids are both found.
func TestJoin(t *testing.T) {
	for name, ids := range map[string][]int64{
		"dense":    {7, 8, 9, 12, 8},
		"sparse":   {5, 1 << 40, -3, 5},
		"extremes": {math.MinInt64, math.MaxInt64, 0},
		"none":     {},
	} {
		want := map[int64]int32{}
		for i, id := range ids {
			if id != 0 {
				want[id] = int32(2 * i)
			}
		}
		j := NewJoin(2*len(ids), func(i int) int64 {
			if i%2 == 0 {
				return ids[i/2]
			}
			return 0
		})
		for id, at := range want {
			if got := j.Of(id); got != at {
				t.Errorf("%s: %d is row %d, want %d", name, id, got, at)
			}
		}
		if _, ok := want[77]; !ok && j.Of(77) != -1 {
			t.Errorf("%s: an id that is not there is found", name)
		}
	}
}
