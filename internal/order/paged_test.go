package order

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A paged table behaves like a map, however its keys are distributed.
func TestPagedTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, key := range map[string]func(i int) int64{
		"dense":      func(i int) int64 { return int64(i) },
		"offset":     func(i int) int64 { return 1<<40 + int64(i) },
		"descending": func(i int) int64 { return 1<<20 - int64(i) },
		"strided":    func(i int) int64 { return int64(i) * 4099 },
		"random":     func(int) int64 { return r.Int64() - r.Int64() },
		"mixed":      func(i int) int64 { return []int64{int64(i), r.Int64N(1 << 34), -int64(i)}[r.IntN(3)] },
	} {
		var p Paged[int32]
		want := map[int64]int32{}
		for i := range 200_000 {
			k := key(i)
			want[k]++
			*p.At(k)++
		}
		for k, v := range want {
			if got := p.Find(k); got == nil || *got != v {
				t.Fatalf("%s: %d is not found", name, k)
			}
		}
		if got := p.Find(math.MinInt64); got != nil && *got != 0 {
			t.Errorf("%s: found what was never there", name)
		}
		// At 4 bytes per value, a page for each value would take 200 MB.
		if size := 4 * pageSize * p.inUse; size > 20<<20 {
			t.Errorf("%s: %d MB in pages", name, size>>20)
		}
	}
}
