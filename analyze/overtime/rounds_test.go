package overtime

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A program makes steps, and its host takes longer for each than the device.
type program struct {
	step    func(i int, r *rand.Rand) int64 // how long the large kernel of a step runs, ns
	kernels func(i int) int                 // how many small ones there are, 20 us each
	name    func(i int) string              // of the annotation
	rest    int64                           // between annotations, ns
	ahead   int                             // how many kernels the host launches ahead of the device at most; 0 is any number
}

const (
	programSteps = 160
	hostStep     = 4_000_000 // ns
	// The large kernel becomes longer at this step in planted runs.
	longerAt = 90
)

// record writes what a profiler would have recorded.
func (p *program) record(seed uint64) *profile.Set {
	syms := trace.NewSymbols()
	r := rand.New(rand.NewPCG(seed, 23))
	out := &testset.RowStream{}
	large, small, launch := syms.Intern("gemm"), syms.Intern("add"), syms.Intern("cudaLaunchKernel")
	correlation, at, device := int64(0), int64(1_000_000), int64(0)
	var ends []int64 // of kernels
	for i := range programSteps {
		begin := at
		kernel := func(name trace.Sym, took int64) {
			if k := len(ends) - p.ahead; p.ahead > 0 && k >= 0 {
				at = max(at, ends[k])
			}
			at += hostStep/int64(p.kernels(i)+1) - 20_000 + r.Int64N(40_000)
			device = max(device, at)
			correlation++
			e := profile.Event{Start: trace.Time(at - 5000), End: trace.Time(at - 2000), Correlation: correlation, Name: launch}
			out.CallRows = append(out.CallRows, profile.Call{Event: e})
			e.Start, e.End, e.Name = trace.Time(device), trace.Time(device+took), name
			out.KernelRows = append(out.KernelRows, profile.Kernel{Event: e})
			device += took
			ends = append(ends, device)
		}
		kernel(large, p.step(i, r))
		for range p.kernels(i) {
			kernel(small, 20_000)
		}
		out.RangeRows = append(out.RangeRows, profile.Range{Event: profile.Event{Start: trace.Time(begin), End: trace.Time(at), Name: syms.Intern(p.name(i))}},
			profile.Range{Event: profile.Event{Start: trace.Time(begin), End: trace.Time(begin+at) / 2, Name: syms.Intern("half")}})
		at += p.rest
	}
	return testset.SetOf(syms, []string{"TP0"}, out)
}

func fifteen(int) int           { return 15 }
func trainStep(int) string      { return "train_step" }
func profilerStep(i int) string { return "ProfilerStep#" + strconv.Itoa(i) }

// varied is a time that differs by some percent from step to step.
func varied(ns int64, r *rand.Rand) int64 { return ns + r.Int64N(ns/10) - ns/20 }

func suddenly(i int, r *rand.Rand) int64 {
	if i >= longerAt {
		return varied(1_400_000, r)
	}
	return varied(700_000, r)
}

var plantedSteps = map[string]struct {
	program
	says string // part of the sentence; "" is no finding
}{
	"one kernel is twice as long": {program{suddenly, fifteen, trainStep, 0, 0}, "GPU time per train_step on TP0 rises from"},
	"steps of the profiler":       {program{suddenly, fifteen, profilerStep, 100_000, 0}, "GPU time per ProfilerStep on TP0 rises from"},
	"bit by bit": {program{func(i int, r *rand.Rand) int64 { return varied(500_000+int64(i)*8_000, r) }, fifteen, trainStep, 0, 0},
		"bit by bit since"},
	"bit by bit from the middle on": {program{func(i int, r *rand.Rand) int64 { return varied(500_000+int64(max(0, i-70))*14_000, r) }, fifteen, trainStep, 0, 0},
		"bit by bit since"},
	"nothing happens": {program{func(_ int, r *rand.Rand) int64 { return varied(900_000, r) }, fifteen, trainStep, 0, 0}, ""},
	"sizes differ":    {program{func(_ int, r *rand.Rand) int64 { return 300_000 + r.Int64N(1_500_000) }, fifteen, trainStep, 0, 0}, ""},
	"becomes shorter": {program{func(i int, r *rand.Rand) int64 { return suddenly(programSteps-i, r) }, fifteen, trainStep, 0, 0}, ""},
	"a few long ones": {program{func(i int, r *rand.Rand) int64 {
		if i%40 == 20 {
			return 3_000_000
		}
		return varied(700_000, r)
	}, fifteen, trainStep, 0, 0}, ""},
	"a little longer": {program{func(i int, r *rand.Rand) int64 { return varied(700_000+int64(i/longerAt)*60_000, r) }, fifteen, trainStep, 0, 0}, ""},
	"more kernels, too": {program{suddenly, func(i int) int {
		if i >= longerAt {
			return 24
		}
		return 15
	}, trainStep, 0, 0}, ""},
	"the host is ahead at first":    {program{func(_ int, r *rand.Rand) int64 { return varied(8_000_000, r) }, fifteen, trainStep, 0, 400}, ""},
	"longer, and the host is ahead": {program{func(i int, r *rand.Rand) int64 { return 8 * suddenly(i, r) }, fifteen, trainStep, 0, 60}, "GPU time per train_step on TP0 rises from"},
	"annotations of a part":         {program{suddenly, fifteen, trainStep, 3_000_000, 0}, ""},
	"each has its own name":         {program{suddenly, fifteen, func(i int) string { return "request " + strconv.Itoa(i) }, 0, 0}, ""},
}

// TestRateOfLongerSteps counts how often it is found when steps of a program take more of a device, and nothing where they do not.
func TestRateOfLongerSteps(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, name := range slices.Sorted(maps.Keys(plantedSteps)) {
		c, right := plantedSteps[name], 0
		for _, seed := range seeds {
			timeline := timelineOf(c.record(seed), Options{})
			found, _ := timeline.Findings()
			switch {
			case len(found) == 0 && c.says == "":
				right++
			case len(found) == 1 && c.says != "" && strings.Contains(found[0].Text, c.says):
				right++
				if f := &found[0]; !strings.Contains(name, "bit") && c.ahead == 0 {
					const before, after = 700_000 + 15*20_000, 1_400_000 + 15*20_000
					if math.Abs(f.Metric.Before/before-1) > 0.03 || math.Abs(f.Metric.After/after-1) > 0.03 || math.Abs(float64(f.Since)-longerAt*hostStep) > 3*hostStep ||
						!strings.HasPrefix(f.Evidence[1].Text, "gemm: ") || !strings.Contains(f.Text, "still takes") {
						t.Errorf("%s, seed %d: since %d, %v: %s, %v", name, seed, f.Since, f.Metric, f.Text, f.Evidence)
					}
				}
			default:
				t.Logf("%s, seed %d: %+v", name, seed, found)
			}
		}
		testset.Rate(t, "GPU time per step: "+name, right, len(seeds), 95)
	}
}
