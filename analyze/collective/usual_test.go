package collective

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A kernel of unknown size is long if it takes longer than those around it and than
// those at the same position in other steps.
func TestLongKernelsOfUnknownSize(t *testing.T) {
	const us = 1000
	steps := func(n int, step ...int64) (took []int64) {
		for range n {
			took = append(took, step...)
		}
		return took
	}
	step := slices.Repeat([]int64{20 * us}, 24)
	step[3], step[4], step[17] = 900*us, 2000*us, 700*us // these send more
	waits := steps(6, step...)
	waits[30] += 5000 * us // next to a position that is always long
	waits[4*24+17] += 9000 * us
	for _, c := range []struct {
		name   string
		kernel string
		took   []int64
		long   int
		wait   int64
	}{
		{"more to send in every step", "ncclKernel_AllReduce_RING_LL_Sum_float", steps(6, step...), 0, 0},
		{"two that waited", "ncclKernel_AllReduce_RING_LL_Sum_float", waits, 2, 14_000 * us},
		{"every second one sends more", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", steps(9, 20*us, 2000*us), 0, 0},
		{"too few to tell", "ncclDevKernel_AllGather_RING_LL", append(steps(9, 3500*us), 441_000*us), 0, 0},
		{"one of many", "ncclDevKernel_AllGather_RING_LL", append(steps(19, 3500*us), 441_000*us), 1, 437_500 * us},
		{"a kernel that sends little, few", "all_reduce_one_shot_push_kernel", append(steps(9, 10*us), 3000*us), 1, 2990 * us},
		{"a kernel that sends little, in every step", "all_reduce_one_shot_push_kernel", steps(4, step...), 12, 4 * (880 + 1980 + 680) * us},
	} {
		s := newSyncPoints("a")
		for i, ns := range c.took {
			p := s.part(0, "allreduce", int64(i)*1_000_000*us, ns, false)
			p.Dtype, p.Name = 0, s.Syms.Intern(c.kernel)
		}
		if p := Measure(s.Set, 0, 0).Parts[0]; p.Long != c.long || p.LongWait != c.wait || p.Bytes != -1 {
			t.Errorf("%s: %d waited %d ns, want %d and %d", c.name, p.Long, p.LongWait, c.long, c.wait)
		}
	}
}

// A planted period is found among kernels that are long by chance, and no period is found if there is none.
func TestPeriodOfLongKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found, byChance := 0, 0
	const runs = 200
	for range runs {
		period, n := 8+r.IntN(300), 0
		isLong := make([]bool, period*(4+r.IntN(6)))
		for range 2 + r.IntN(period/4) {
			for i := r.IntN(period); i < len(isLong); i += period {
				isLong[i] = true
				n++
			}
		}
		var chance []int
		for range n / 4 {
			isLong[r.IntN(len(isLong))] = true
		}
		var long []int
		for i, is := range isLong {
			if is {
				long = append(long, i)
			}
			if r.IntN(len(isLong)) < n {
				chance = append(chance, i)
			}
		}
		if got := periodOf(long, len(isLong)); got > 0 && got%period == 0 {
			found++
		}
		if len(chance) > 8 && periodOf(chance, len(isLong)) != 0 {
			byChance++
		}
	}
	if found < runs*95/100 || byChance > runs*5/100 {
		t.Errorf("found %d of %d, and %d where there is none", found, runs, byChance)
	}
}
