package overtime

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A program runs steps, and its host needs longer for each than the device.
type program struct {
	step    func(i int, r *rand.Rand) int64 // duration of the large kernel in a step, ns
	kernels func(i int) int                 // number of small kernels, 20 us each
	name    func(i int) string              // of the annotation
	rest    int64                           // between annotations, ns
	ahead   int                             // maximum number of kernels that the host launches ahead of the device; 0 is no limit
	outside bool                            // other threads launch just as much, between the steps
	other   bool                            // the large kernel has another name from longerAt on
	waves   bool                            // the clock of the device rises and falls
	beside  bool                            // until longerAt, half of the large kernel runs on another stream at the same time
}

const (
	programSteps = 160
	hostStep     = 4_000_000 // ns
	// longerAt is the step from which on the large kernel is longer in planted runs.
	longerAt = 90
)

// record returns what a profiler would record.
func (p *program) record(seed uint64) (set *profile.Set, longer trace.Time) {
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
			if p.beside && i < longerAt && name == large {
				out.KernelRows = append(out.KernelRows, profile.Kernel{Event: e, Stream: 1})
			}
			device += took
			ends = append(ends, device)
		}
		if p.other && i == longerAt {
			large = syms.Intern("gemm of another size")
		}
		took := p.step(i, r)
		if p.waves {
			took += int64(float64(took) * 0.08 * math.Sin(float64(i)/9))
		}
		if kernel(large, took); i == longerAt {
			longer = trace.Time(device - took)
		}
		for range p.kernels(i) {
			kernel(small, 20_000)
		}
		out.RangeRows = append(out.RangeRows, profile.Range{Event: profile.Event{Start: trace.Time(begin), End: trace.Time(at), Name: syms.Intern(p.name(i))}},
			profile.Range{Event: profile.Event{Start: trace.Time(begin+at) / 2, End: trace.Time(at), Name: syms.Intern("half")}})
		if p.outside {
			kernel(syms.Intern("sort"), 4_000_000)
		}
		at += p.rest
	}
	return testset.SetOf(syms, []string{"TP0"}, out), longer
}

func fifteen(int) int           { return 15 }
func trainStep(int) string      { return "train_step" }
func profilerStep(i int) string { return "ProfilerStep#" + strconv.Itoa(i) }

// varied returns a time that varies by a few percent from step to step.
func varied(ns int64, r *rand.Rand) int64 { return ns + r.Int64N(ns/10) - ns/20 }

func suddenly(i int, r *rand.Rand) int64 {
	if i >= longerAt {
		return varied(1_400_000, r)
	}
	return varied(700_000, r)
}

var plantedSteps = map[string]struct {
	program
	says string // part of the text; "" is no finding
}{
	"one kernel is twice as long": {program{step: suddenly, kernels: fifteen, name: trainStep}, "GPU time per train_step on TP0 rises from"},
	"steps of the profiler":       {program{step: suddenly, kernels: fifteen, name: profilerStep, rest: 100_000}, "GPU time per ProfilerStep on TP0 rises from"},
	"gradually": {program{step: func(i int, r *rand.Rand) int64 { return varied(500_000+int64(i)*8_000, r) }, kernels: fifteen, name: trainStep},
		"gradually since"},
	"gradually from the middle on": {program{step: func(i int, r *rand.Rand) int64 { return varied(500_000+int64(max(0, i-70))*14_000, r) }, kernels: fifteen, name: trainStep},
		"gradually since"},
	"nothing happens": {program{step: func(_ int, r *rand.Rand) int64 { return varied(900_000, r) }, kernels: fifteen, name: trainStep}, ""},
	"sizes differ":    {program{step: func(_ int, r *rand.Rand) int64 { return 300_000 + r.Int64N(1_500_000) }, kernels: fifteen, name: trainStep}, ""},
	"becomes shorter": {program{step: func(i int, r *rand.Rand) int64 { return suddenly(programSteps-i, r) }, kernels: fifteen, name: trainStep}, ""},
	"a few long ones": {program{step: func(i int, r *rand.Rand) int64 {
		if i%40 == 20 {
			return 3_000_000
		}
		return varied(700_000, r)
	}, kernels: fifteen, name: trainStep}, ""},
	"a little longer": {program{step: func(i int, r *rand.Rand) int64 { return varied(700_000+int64(i/longerAt)*60_000, r) }, kernels: fifteen, name: trainStep}, ""},
	"more kernels, too": {program{step: suddenly, kernels: func(i int) int {
		if i >= longerAt {
			return 24
		}
		return 15
	}, name: trainStep}, "GPU time per train_step on TP0 rises from"},
	"the host is ahead at first":    {program{step: func(_ int, r *rand.Rand) int64 { return varied(8_000_000, r) }, kernels: fifteen, name: trainStep, ahead: 400}, ""},
	"longer, and the host is ahead": {program{step: func(i int, r *rand.Rand) int64 { return 8 * suddenly(i, r) }, kernels: fifteen, name: trainStep, ahead: 60}, "GPU time per train_step on TP0 rises from"},
	"the host is far ahead":         {program{step: func(i int, r *rand.Rand) int64 { return 8 * suddenly(i, r) }, kernels: fifteen, name: trainStep, ahead: 800}, "GPU time per train_step on TP0 rises from"},
	"ahead without any limit":       {program{step: func(i int, r *rand.Rand) int64 { return 8 * suddenly(i, r) }, kernels: fifteen, name: trainStep}, "GPU time per train_step on TP0 rises from"},
	"ahead, nothing happens":        {program{step: func(_ int, r *rand.Rand) int64 { return varied(8_000_000, r) }, kernels: fifteen, name: trainStep}, ""},
	"the clock varies":              {program{step: func(_ int, r *rand.Rand) int64 { return varied(8_000_000, r) }, kernels: fifteen, name: trainStep, ahead: 60, waves: true}, ""},
	"the clock varies, and another kernel": {program{step: func(i int, r *rand.Rand) int64 { return 8 * suddenly(i, r) }, kernels: fifteen, name: trainStep, ahead: 60, waves: true, other: true},
		"GPU time per train_step on TP0 rises from"},
	"another kernel as long": {program{step: func(_ int, r *rand.Rand) int64 { return varied(8_000_000, r) }, kernels: fifteen, name: trainStep, ahead: 60, other: true}, ""},
	// Then no step is reported. The kernel itself takes longer, which costs 2 % of the time.
	"much is launched outside": {program{step: suddenly, kernels: fifteen, name: trainStep, rest: 10_000_000, outside: true}, "most of all `gemm`, while others take as long as before"},
	"pauses between steps":     {program{step: suddenly, kernels: fifteen, name: trainStep, rest: 1_000_000}, "GPU time per train_step on TP0 rises from"},
	"each has its own name":    {program{step: suddenly, kernels: fifteen, name: func(i int) string { return "request " + strconv.Itoa(i) }}, "kernels take 1.9"},
}

// In simulated runs, steps of a program that take more time of a device are found, and nothing if they do not.
func TestRateOfLongerSteps(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, name := range slices.Sorted(maps.Keys(plantedSteps)) {
		c, right := plantedSteps[name], 0
		for _, seed := range seeds {
			set, longer := c.record(seed)
			timeline := timelineOf(set, Options{})
			found, _ := timeline.Findings()
			switch {
			case len(found) == 0 && c.says == "":
				right++
			case len(found) == 1 && c.says != "" && strings.Contains(found[0].Text, c.says):
				right++
				if strings.HasPrefix(c.says, "GPU time") {
					c.check(t, name, &found[0], longer)
				}
			default:
				t.Logf("%s, seed %d: %+v", name, seed, found)
			}
		}
		testset.Rate(t, "GPU time per step: "+name, right, len(seeds), 95)
	}
}

// check compares a finding about a sudden change with the planted one.
func (p *program) check(t *testing.T, name string, f *finding.Finding, longer trace.Time) {
	truth := func(i int) float64 {
		sum, r := 0.0, rand.New(rand.NewPCG(1, 1))
		for range programSteps {
			sum += float64(p.step(i, r))
		}
		return sum/programSteps + float64(p.kernels(i))*20_000
	}
	near, severity := 0.03, finding.Severity("")
	if p.waves {
		near = 0.1
	}
	if p.kernels(0) != p.kernels(longerAt) {
		severity = finding.Info
	}
	if before, after := truth(0), truth(longerAt); math.Abs(f.Metric.Before/before-1) > near || math.Abs(f.Metric.After/after-1) > near ||
		math.Abs(float64(f.Since-longer)) > 3*max(float64(hostStep+p.rest), after) || !strings.HasPrefix(f.Evidence[1].Text, "gemm") || f.Severity != severity {
		t.Errorf("%s: since %d, not %d, %v, not from %.0f to %.0f: %s, %v", name, f.Since, longer, f.Metric, before, after, f.Text, f.Evidence)
	}
	if still, ahead := strings.Contains(f.Text, "still takes"), p.step(0, rand.New(rand.NewPCG(1, 1))) > hostStep; still == ahead {
		t.Errorf("%s: %s", name, f.Text)
	}
}

// If kernels take as long as before, but no longer overlap, the evidence says so.
func TestStepsThatOverlapLess(t *testing.T) {
	set, _ := (&program{step: suddenly, kernels: fifteen, name: trainStep, beside: true}).record(1)
	found, _ := timelineOf(set, Options{}).Findings()
	if len(found) != 1 || !strings.HasPrefix(found[0].Evidence[1].Text, "kernels and copies add up to 1.70 ms per step before, and 1.70 ms after: what ran at the same time") {
		t.Errorf("%v", found)
	}
}

// 15 steps show a change if all steps before it are shorter. With enough kernels at the same position, these are reported instead.
func TestFewSteps(t *testing.T) {
	for name, c := range map[string]struct {
		program
		says string
	}{
		"enough kernels":      {program{step: suddenly, kernels: fifteen, name: trainStep, beside: true}, "kernels take 1.5"},
		"a kernel is longer":  {program{step: suddenly, kernels: fifteen, name: trainStep}, "GPU time per train_step on TP0 rises from"},
		"as long as the rest": {program{step: func(_ int, r *rand.Rand) int64 { return varied(900_000, r) }, kernels: fifteen, name: trainStep}, ""},
	} {
		set, longer := c.record(3)
		found, _ := timelineOf(set, Options{From: longer - 7*hostStep, To: longer + 9*hostStep}).Findings()
		if len(found) != min(1, len(c.says)) || len(found) == 1 && !strings.HasPrefix(found[0].Text, c.says) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// Without recorded calls, it is unknown which kernels a step launched; only the kernel that takes twice as long is found.
func TestStepsWithoutLaunches(t *testing.T) {
	set, _ := (&program{step: suddenly, kernels: fifteen, name: trainStep}).record(1)
	set.Streams[0].(*testset.RowStream).CallRows = nil
	if found, _ := timelineOf(set, Options{}).Findings(); len(found) != 1 || !strings.HasPrefix(found[0].Text, "kernels take 1.9") {
		t.Errorf("%v", found)
	}
}
