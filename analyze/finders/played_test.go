package finders

import (
	"math"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A rank that computes longer costs the time that the run would save without it. That is less than its peers'
// waits if their hosts are slow, too.
func TestCostOfSlowRank(t *testing.T) {
	for name, s := range map[string]testset.TPServer{
		"device":            {Ranks: 4, Segments: 24, Compute: 90e3, Noise: 0.02, Launch: 30e3, Transfer: 12e3, Factor: 1.15, Lag: 1},
		"hosts are as slow": {Ranks: 4, Segments: 24, Compute: 45e3, Noise: 0.03, Launch: 80e3, Transfer: 10e3, Factor: 2, Lag: 1},
	} {
		s.Seed, s.Steps, s.Slow = 1, 40, 1
		length := func() (set *profile.Set, ns float64) {
			set = s.Play()
			out, gemm := set.Streams[0].(*testset.RowStream), set.Syms.Intern("gemm_128x64")
			ends, first, last := map[int32]trace.Time{}, trace.Time(math.MaxInt64), trace.Time(0)
			for _, k := range out.KernelRows {
				if end, ok := ends[k.Rank]; ok {
					k := profile.Kernel{Event: profile.Event{Rank: k.Rank, Start: end, End: k.Start, Name: gemm}}
					if most := trace.Time(1.2 * s.Compute); int(k.Rank) != s.Slow && k.Dur() > int64(most) {
						k.End = k.Start + most
					}
					out.KernelRows = append(out.KernelRows, k)
				}
				ends[k.Rank], first, last = k.End, min(first, k.Start), max(last, k.End)
			}
			return set, float64(last - first)
		}
		set, took := length()
		m := Measure(Inputs{Profiles: set})
		s.Factor, s.Lag = 1, 1
		_, calm := length()
		want, found := 1-calm/took, m.Look(All).Findings
		i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Kind == finding.Straggler && f.Rank == "TP1" })
		if i < 0 || math.Abs(found[i].Cost-want) > 0.03 {
			t.Errorf("%s: %+v, want %.3f of the time", name, found, want)
		}
	}
}
