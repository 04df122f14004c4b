package gaps

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A standstill4 has four ranks that launch 400 kernels each, one after the other, and stand still before some of
// them. The ranks' clocks are offset.
type standstill4 struct {
	before func(rank, i int) int64  // ns, before a kernel
	in     func(rank, i int) string // the thread's Python function before a kernel; "" is none
	says   string                   // in the finding about host wait; "" is no mention of all ranks
	cost   float64                  // share of the time of devices
}

func (c *standstill4) findings(t *testing.T) (text string, cost float64) {
	t.Helper()
	syms, s, ranks := trace.NewSymbols(), &testset.RowStream{}, []string{"TP0", "TP1", "TP2", "TP3"}
	set := testset.SetOf(syms, ranks, s)
	for rank := range ranks {
		set.ClockOffsets = append(set.ClockOffsets, int64(rank)*500_000_000)
		r := rand.New(rand.NewPCG(uint64(rank), 7))
		at := int64(gpu.Absolute) + set.ClockOffsets[rank]
		event := func(name string, from, to, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(from), End: trace.Time(to), Name: syms.Intern(name), Correlation: correlation, Rank: int32(rank), PID: int32(rank)}
		}
		for i := range 400 {
			from, n := at, int64(i+1)
			at += 10_000 + r.Int64N(30_000) + c.before(rank, i)
			if name := c.in(rank, i); name != "" {
				s.FrameRows = append(s.FrameRows, profile.Frame{Event: event(name, from, at+2500, 0), TID: 1, Kind: profile.PythonFrame})
			}
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", at, at+2000, n), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("k", at+3000, at+8000, n)})
			at += 8000
		}
	}
	s.FrameRows = append(s.FrameRows, profile.Frame{Event: profile.Event{Start: trace.Time(gpu.Absolute) + 5000, End: trace.Time(gpu.Absolute) + 6000, Name: syms.Intern("aten::linear")}, TID: 1, Kind: profile.OperatorFrame})
	collector := Collect(set)
	gpus := gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	found, _ := collector.Measure(Options{}).Findings(gpus.Length())
	if len(found) == 0 {
		return "", 0
	}
	return found[0].Text, found[0].Cost
}

// If hosts stand still at the same time, the finding says so, even if each is in a different function. If all are
// in one function, that is work, and a host that stands still alone is reported by itself.
func TestStandstills(t *testing.T) {
	const ms = 1_000_000
	function := func(rank, i int) string { return fmt.Sprintf("model.py(%d): f%d", rank, rank) }
	nowhere := func(int, int) string { return "" }
	three := func(_, i int) int64 { return map[bool]int64{true: 20 * ms}[i == 100 || i == 200 || i == 300] }
	for name, c := range map[string]standstill4{
		"in nothing":               {before: three, in: nowhere, says: "is 3 pauses of all 4 ranks at once, in which no launching thread recorded anything: 20 ms each", cost: 0.78},
		"in different functions":   {before: three, in: function, says: "is 3 pauses of all 4 ranks at once, in which no launching thread recorded anything: 20 ms each", cost: 0.78},
		"in one function":          {before: three, in: func(int, int) string { return "model.py(1): f" }},
		"one alone":                {before: func(rank, i int) int64 { return three(0, i) * int64(max(0, rank-2)) }, in: nowhere},
		"one after the other":      {before: func(rank, i int) int64 { return map[bool]int64{true: 2 * ms}[i == 80*rank+40] }, in: nowhere},
		"all but one":              {before: func(rank, i int) int64 { return three(0, i) * int64(min(1, rank)) }, in: nowhere, says: "pauses of at least 3 of 4 ranks at once", cost: 0.78},
		"never":                    {before: func(int, int) int64 { return 0 }, in: nowhere},
		"for less than 2 % of all": {before: func(_, i int) int64 { return map[bool]int64{true: 250_000}[i == 200] }, in: nowhere},
	} {
		text, cost := c.findings(t)
		if c.says == "" && strings.Contains(text, "at once") || !strings.Contains(text, c.says) {
			t.Errorf("%s: %q", name, text)
		}
		if c.cost > 0 && (cost < c.cost-0.05 || cost > c.cost+0.05) {
			t.Errorf("%s costs %.3f", name, cost)
		}
	}
}
