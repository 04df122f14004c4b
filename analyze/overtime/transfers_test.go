package overtime

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// recordTransfers has two ranks that compute and meet in an all-reduce, 200 times. From the 101st on,
// transfer, compute, or late take the given factor longer. An all-reduce kernel lasts from its rank's
// arrival until both ranks are there and the data has moved. If more is set, every 25th of those is followed by many other kernels.
func recordTransfers(transfer, compute, late float64, more bool) (set *profile.Set, since trace.Time) {
	since = math.MaxInt64
	syms, r := trace.NewSymbols(), rand.New(rand.NewPCG(1, 5))
	out, at := &testset.RowStream{}, 1_000_000.0
	add := func(rank int32, name string, from, to float64) {
		out.KernelRows = append(out.KernelRows, profile.Kernel{Event: profile.Event{Rank: rank, Start: trace.Time(from), End: trace.Time(to), Name: syms.Intern(name)}})
	}
	for i := range 200 {
		moves, computes, waits := 60_000.0, 100_000.0, 20_000.0
		if i >= 100 {
			since = min(since, trace.Time(at))
			moves, computes, waits = moves*transfer, computes*compute, waits*late
		}
		moves *= 0.98 + 0.04*r.Float64()
		first, last := at+computes, at+computes+waits*(0.5+r.Float64())
		arrivals := [2]float64{first, last}
		for rank := range int32(2) {
			add(rank, "gemm_128x64", at, arrivals[rank])
			add(rank, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", arrivals[rank]+1000, last+1000+moves)
		}
		at = last + moves + 5000
		for range 100 {
			if more && i >= 100 && i%25 == 0 {
				add(0, "decode", at, at+2000)
				add(1, "decode", at, at+2000)
				at += 3000
			}
		}
	}
	slices.SortStableFunc(out.KernelRows, func(a, b profile.Kernel) int { return int(a.Rank - b.Rank) })
	return testset.SetOf(syms, []string{"TP0", "TP1"}, out), since
}

// Transfers that take longer are found, with their size and time. Ranks that come
// later are not mistaken for that, nor is more work.
func TestLongerTransfers(t *testing.T) {
	for name, c := range map[string]struct {
		transfer, compute, late, want float64
		more                          bool
	}{
		"nothing":            {1, 1, 1, 0, false},
		"a slower network":   {3, 1, 1, 3, false},
		"a rank comes later": {1, 1, 8, 0, false},
		"more to do":         {3, 3, 1, 0, false},
		"beside other work":  {3, 1, 1, 3, true},
	} {
		set, since := recordTransfers(c.transfer, c.compute, c.late, c.more)
		timeline := timelineOf(set, Options{})
		all, _ := timeline.Findings()
		found := slices.DeleteFunc(all, func(f finding.Finding) bool { return f.Subkind != TransferSubkind })
		switch {
		case c.want == 0 && len(found) == 0:
		case c.want == 0 || len(found) != 1:
			t.Errorf("%s: %+v, want %v times as long", name, found, c.want)
		case math.Abs(found[0].Metric.After-c.want) > 0.1 || max(found[0].Since-since, since-found[0].Since) > 1_500_000:
			t.Errorf("%s: %v times as long since %v, want %v since %v", name, found[0].Metric.After, found[0].Since, c.want, since)
		}
	}
}
