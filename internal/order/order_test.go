package order

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestByTimeIsStable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n     int
		first uint64
		span  uint64
	}{{0, 0, 1}, {1, 5, 1}, {50, 0, 8}, {5000, 1 << 62, 900}, {5000, 0, 1 << 63}, {5000, 7, 1 << 22}, {300, 3, 1}} {
		keys := make([]Key, c.n)
		for i := range keys {
			keys[i] = Key{c.first + r.Uint64N(c.span), uint32(i), 0}
		}
		want := slices.Clone(keys)
		slices.SortStableFunc(want, byTime)
		if got, _ := ByTime(keys, make([]Key, c.n)); !slices.Equal(got, want) {
			t.Errorf("%d keys within %d are not in order", c.n, c.span)
		}
	}
}

func TestIntegersAreStable(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{0, 1, 100, 5000} {
		for _, low := range []int{0, 13, 40, 63} {
			keys := make([]uint64, n)
			for i := range keys {
				keys[i] = r.Uint64() >> r.IntN(60)
			}
			want := slices.Clone(keys)
			slices.SortStableFunc(want, func(a, b uint64) int { return cmp.Compare(a>>low, b>>low) })
			if got, _ := Integers(keys, nil, low); !slices.Equal(got, want) {
				t.Errorf("%d keys are not in order of their bits from %d up", n, low)
			}
		}
	}
}

// Keys of descending numbers are in reverse order of the numbers.
func TestDescending(t *testing.T) {
	numbers := []int64{math.MinInt64, -1 << 40, -2, -1, 0, 1, 2, 1 << 40, math.MaxInt64}
	for i := 1; i < len(numbers); i++ {
		if a, b := Descending(numbers[i-1]), Descending(numbers[i]); a <= b {
			t.Errorf("%d and %d have %d and %d", numbers[i-1], numbers[i], a, b)
		}
	}
}

func TestIntegersOfAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	long, short := make([]int64, 3000), make([]uint32, 3000)
	for i := range long {
		long[i], short[i] = r.Int64N(1<<r.IntN(63)+1), r.Uint32()
	}
	if sorted, _ := Integers(long, nil, 0); !slices.IsSorted(sorted) {
		t.Error("int64 are not in order")
	}
	if sorted, _ := Integers(short, nil, 0); !slices.IsSorted(sorted) {
		t.Error("uint32 are not in order")
	}
}

func TestApply(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 63, 64, 65, 1000} {
		table, order := make([]int, n), make([]uint32, n)
		for i, p := range r.Perm(n) {
			table[i], order[i] = 1000+i, uint32(p)
		}
		Apply(table, order)
		for i := range table {
			if table[i] != 1000+int(order[i]) {
				t.Fatalf("%d rows: place %d holds %d, want %d", n, i, table[i], 1000+order[i])
			}
		}
	}
}

// BenchmarkIntegers sorts durations of up to 100 ms.
func BenchmarkIntegers(b *testing.B) {
	const n = 1 << 19
	r := rand.New(rand.NewPCG(5, 6))
	from, values, scratch := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range from {
		from[i] = r.Int64N(1e8)
	}
	b.SetBytes(n)
	for b.Loop() {
		copy(values, from)
		Integers(values, scratch, 0)
	}
}

func BenchmarkByTime(b *testing.B) {
	const n = 1 << 19
	r := rand.New(rand.NewPCG(5, 6))
	from, keys, scratch := make([]Key, n), make([]Key, n), make([]Key, n)
	for i := range from {
		from[i] = Key{r.Uint64N(60e9), uint32(i), 0}
	}
	b.SetBytes(n)
	for b.Loop() {
		copy(keys, from)
		ByTime(keys, scratch)
	}
}

func TestLargest(t *testing.T) {
	if got := Largest(map[string]int{"b": 2, "d": 9, "a": 2, "c": 1}); !slices.Equal(got, []string{"d", "a", "b", "c"}) {
		t.Errorf("%v", got)
	}
	if got := Largest(map[string]int(nil)); len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
}
