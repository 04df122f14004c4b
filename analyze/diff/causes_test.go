package diff

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// serving returns a capture of a server whose steps run one operator inside another.
// The inner one takes inner ns and launches a kernel of kernel ns.
func serving(inner, kernel int64) *profile.Set {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(start, dur int64, name string, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(start), End: trace.Time(start + dur), Name: syms.Intern(name), PID: 1, Correlation: correlation}
	}
	for i := range int64(60) {
		at, noise := 100_000*(1+i), i*7%5
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(at, 90_000, "step[DECODE bs=8]", 0), TID: 5})
		s.FrameRows = append(s.FrameRows, profile.Frame{Event: event(at+10, 5000+inner+noise, "aten::linear", 0), TID: 5},
			profile.Frame{Event: event(at+20, inner+noise, "aten::mm", 0), TID: 5})
		s.CallRows = append(s.CallRows, profile.Call{Event: event(at+30, 50, "cudaLaunchKernel", i+1), TID: 5})
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(at+200, kernel+noise, "gemm", i+1)})
	}
	return testset.SetOf(syms, []string{"TP0"}, s)
}

// Operators are compared by their own time, so that a slower one does not make those
// around it slower, and only if the options ask for them.
func TestDiffOfOperators(t *testing.T) {
	before, after := Capture{Profiles: serving(1000, 9000), Operators: true}, Capture{Profiles: serving(3000, 4500), Operators: true}
	d := Compare(collect(before), collect(after), Options{})
	want := map[string]float64{"operator aten::mm": 3, "operator aten::linear": 1, "operator gpu aten::mm": 0.5}
	for i := range d.Operators {
		r := &d.Operators[i]
		ratio, ok := want[r.Kind.String()+" "+r.Name]
		if !ok || math.Abs(r.Total.Change.Ratio-ratio) > 0.01 || r.Changed() != (ratio != 1) || r.Before.N != 60 || r.After.N != 60 {
			t.Errorf("%s %s: %+v, want %v", r.Kind, r.Name, r.Total, ratio)
		}
		delete(want, r.Kind.String()+" "+r.Name)
	}
	if len(want) > 0 {
		t.Errorf("no rows of %v", want)
	}
	sums := operators.Sum(before.Profiles, profilewalk.Options{}).Names
	for _, s := range sums {
		for i := range d.Operators {
			r := &d.Operators[i]
			total := map[Kind]int64{Operator: s.SelfCPU, OperatorGPU: s.SelfGPU}[r.Kind]
			if r.Name == s.Row.Name && r.Before.PerUnit != total*10/60 {
				t.Errorf("%s %s: %d tenths of ns a step, of %d ns in all", r.Kind, r.Name, r.Before.PerUnit, total)
			}
		}
	}
	// Each step yields 8 tokens and takes as long as its kernel.
	if len(d.Load) != 1 || d.Load[0].Name != "tokens per second in decode steps" || math.Abs(d.Load[0].Change.Change.Ratio-2) > 0.01 ||
		math.Abs(d.Load[0].Before-8/9002e-9) > 100 || !d.Load[0].Change.Matters() {
		t.Errorf("%+v", d.Load)
	}
	before.Operators, after.Operators = false, false
	plain := Compare(collect(before), collect(after), Options{})
	if plain.Operators != nil || plain.Gaps != nil || len(plain.Rows) != len(d.Rows) {
		t.Errorf("%d operators that nobody asked for", len(plain.Operators))
	}
	for i := range plain.Rows {
		if plain.Rows[i].Total.Change.P != d.Rows[i].Total.Change.P {
			t.Errorf("%s is less certain beside operators: %v, was %v", d.Rows[i].Name, d.Rows[i].Total.Change.P, plain.Rows[i].Total.Change.P)
		}
	}
}

// If the host copies data in every second step since some version, GPUs wait longer
// for that copy. Healthy pairs do not differ.
func TestDiffOfGaps(t *testing.T) {
	before := collect(Capture{Profiles: testset.Stalled(t, 3, torch.Stall{}), Gaps: true})
	same := collect(Capture{Profiles: testset.Stalled(t, 4, torch.Stall{}), Gaps: true})
	for _, r := range Compare(before, same, Options{}).Gaps {
		if r.Changed() {
			t.Errorf("%s changed: %+v %+v", r.Name, r.Before, r.After)
		}
	}
	set := testset.Stalled(t, 5, torch.Stall{Cause: torch.StallPageable, Length: 8 * time.Millisecond, Every: 2})
	d := Compare(before, collect(Capture{Profiles: set, Gaps: true}), Options{})
	worst := &d.Gaps[0]
	if worst.Kind != HostCause || !worst.Changed() || worst.Moved() <= 0 || !strings.HasSuffix(worst.Name, ": pageable copy, cudaMemcpyAsync under aten::to in process_batch_result() (scheduler.py)") {
		t.Errorf("%+v", worst)
	}
	// All rows add up to the late launches that report --gaps shows.
	collector := gaps.Collect(set)
	gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	sum, late := int64(0), collector.Measure(gaps.Options{}).Late
	for i := range d.Gaps {
		if s := &d.Gaps[i].After; s.N > 0 {
			sum += s.PerUnit
		}
	}
	if got := float64(sum) / 10 * float64(d.After.Steps); math.Abs(got-float64(late)) > 1e-3*float64(late) {
		t.Errorf("rows add up to %.0f ns, late gaps to %d", got, late)
	}
}
