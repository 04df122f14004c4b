package diff

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A recorded makes captures of one rank by hand: a step every us, and kernels in it.
type recorded struct {
	steps int
	rank  string
	held  int64 // the maximum number of durations to hold; 0 is the default
	// bare captures have no annotations of steps.
	bare bool
	runs map[string]func(step int) int64 // the duration of each kernel by name and step; each runs once per step
}

func (c *recorded) capture() *Collected {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(start, dur int64, name string) profile.Event {
		return profile.Event{Start: trace.Time(start), End: trace.Time(start + dur), Name: syms.Intern(name), PID: 1}
	}
	for i := range c.steps {
		at := int64(1000 + 1000*i)
		if !c.bare {
			s.RangeRows = append(s.RangeRows, profile.Range{Event: event(at, 900, fmt.Sprintf("step[DECODE bs=%d]", 1+i%2)), TID: 5})
		}
		for _, name := range slices.Sorted(maps.Keys(c.runs)) { // in the same order in each step, as a program launches them
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(at+10, c.runs[name](i), name)})
		}
		s.CopyRows = append(s.CopyRows, profile.Copy{Event: event(at+500, 40, "[CUDA memset]")})
	}
	d := NewCollected(0)
	if c.held > 0 {
		d.in.Limit = c.held
	}
	d.Add(Capture{Profiles: testset.SetOf(syms, []string{c.rank}, s)})
	return d
}

// about returns durations that vary slightly from step to step.
func about(ns int64) func(int) int64 { return func(step int) int64 { return ns + int64(step*7%5) } }

// find returns the row of a name.
func find(t *testing.T, d *Diff, name string) *Row {
	t.Helper()
	for i := range d.Rows {
		if d.Rows[i].Name == name {
			return &d.Rows[i]
		}
	}
	t.Fatalf("no row %q", name)
	return nil
}

// Captures of different lengths are compared per step. Kernels that only one side
// has are reported, together with their likely counterparts on the other side.
func TestDiffByHand(t *testing.T) {
	before := recorded{rank: "monday", steps: 10, runs: map[string]func(int) int64{
		"gemm": about(100), "norm": about(50), "void moe<(int)64>(float *)": about(30), "old": about(20),
	}}
	after := recorded{rank: "tuesday", steps: 20, runs: map[string]func(int) int64{
		"gemm": about(150), "norm": about(50), "void moe<128>(float *)": about(31),
	}}
	for _, byRank := range []bool{false, true} {
		d := Compare(before.capture(), after.capture(), Options{ByRank: byRank})
		// Durations are 100 to 104 ns, all equally often.
		gemm := find(t, d, "gemm")
		if want := (Stat{N: 10, P50: 102, P99: 104, Mean: 1020, PerUnit: 1020}); gemm.Before != want {
			t.Errorf("gemm before: %+v", gemm.Before)
		}
		if want := (Stat{N: 20, P50: 152, P99: 154, Mean: 1520, PerUnit: 1520}); gemm.After != want {
			t.Errorf("gemm after: %+v", gemm.After)
		}
		if c := gemm.Total; c.Sure == "" || math.Abs(c.Change.Ratio-152.0/102) > 1e-9 || c.Change.Low < 1.47 || c.Change.High > 1.51 {
			t.Errorf("gemm: %+v", c)
		}
		if gemm.Effect() != 500 || d.Rows[0].Name != "busy" || d.Rows[0].Effect() != 500 {
			t.Errorf("gemm costs %d tenths, and %s comes first", gemm.Effect(), d.Rows[0].Name)
		}
		for _, name := range []string{"norm", "[CUDA memset]"} {
			if r := find(t, d, name); r.Changed() || r.Moved() != 0 || r.Before.N*2 != r.After.N {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if r := find(t, d, "void moe<(int)64>(float *)"); !r.Changed() || r.Like != "void moe<128>(float *)" || r.words(&r.P50) != "gone" {
			t.Errorf("moe: %+v", r)
		}
		if r := find(t, d, "old"); !r.Changed() || r.Like != "" {
			t.Errorf("old: %+v", r)
		}
		if r := find(t, d, "decode bs=2"); r.Changed() || r.Before.N != 5 || r.After.N != 10 {
			t.Errorf("steps: %+v", r)
		}
		on := ""
		if byRank {
			on = " on monday" // each side has only this rank, whatever its name is
		}
		// A step runs gemm, norm, memset, moe, and, before the change, old.
		v := d.verdict
		if !strings.HasPrefix(v, "GPU busy"+on+" total per step 142 -> 192 ns (") || !strings.Contains(v, "; gemm"+on+" total per step 102 -> 152 ns (+49.0 %, CI ") || !strings.Contains(v, "; 1 new and 2 gone") {
			t.Errorf("verdict: %s", v)
		}
		// The kernels that are gone took 32 and 22 ns; their replacement takes 33 ns.
		if swap := "void moe<(int)64>(float *) and 1 other kernel gave way to void moe<128>(float *): 54 -> 33 ns per step (certain)"; !byRank && !strings.Contains(v, swap) {
			t.Errorf("verdict: %s", v)
		}
	}
}

// Without steps, totals are normalized to equal numbers of launches, so that a
// capture of half the length shows no change.
func TestDiffByLaunches(t *testing.T) {
	runs := map[string]func(int) int64{"gemm": about(100)}
	long, short := recorded{rank: "r", steps: 201, bare: true, runs: runs}, recorded{rank: "r", steps: 101, bare: true, runs: runs}
	d := Compare(long.capture(), short.capture(), Options{})
	r := find(t, d, "gemm")
	// There are 201 and 101 kernels of 102 ns.
	if r.Before.PerUnit/10 != 20_500 || r.After.PerUnit/10 != 20_498 || r.Changed() || d.per != perSecond || !d.work.known || math.Abs(d.work.ratio-101.0/201) > 1e-9 {
		t.Errorf("%+v", r)
	}
}

// If three steps are all faster than four others, that is chance in 2 of 35 cases: too little data.
func TestDiffOfTooLittle(t *testing.T) {
	before := recorded{rank: "r", steps: 3, runs: map[string]func(int) int64{"gemm": about(100)}}
	after := recorded{rank: "r", steps: 4, runs: map[string]func(int) int64{"gemm": about(900)}}
	d := Compare(before.capture(), after.capture(), Options{})
	if r := find(t, d, "gemm"); r.Changed() || r.words(&r.P50) != "? x8.83" {
		t.Errorf("%+v: %s", r, r.words(&r.P50))
	}
	if !strings.HasPrefix(d.verdict, "GPU compute total per step 102 -> 901 ns (x8.84; not enough data to rule out chance)") || !strings.Contains(d.verdict, "not enough data for ") {
		t.Error(d.verdict)
	}
}

// If memory holds fewer durations than there are, means and totals stay exact,
// percentiles are off by at most 0.4 %, and the same changes are found.
func TestDiffInLittleMemory(t *testing.T) {
	wide := func(scale int64) func(int) int64 {
		return func(step int) int64 { return scale * (1000 + int64(step*7919%5003)) }
	}
	before := recorded{rank: "r", steps: 30000, runs: map[string]func(int) int64{"gemm": wide(10), "norm": wide(3)}}
	after := recorded{rank: "r", steps: 40000, runs: map[string]func(int) int64{"gemm": wide(11), "norm": wide(3)}}
	exact := Compare(before.capture(), after.capture(), Options{})
	before.held, after.held = 1, 1
	rough := Compare(before.capture(), after.capture(), Options{})
	if exact.approximate != 0 || rough.approximate < 2 {
		t.Errorf("%d and %d rows are approximate", exact.approximate, rough.approximate)
	}
	for _, name := range []string{"gemm", "norm"} {
		e, r := find(t, exact, name), find(t, rough, name)
		if e.Changed() != r.Changed() || e.Changed() != (name == "gemm") || e.After.Mean != r.After.Mean || e.After.PerUnit != r.After.PerUnit {
			t.Errorf("%s: %+v, in little memory %+v", name, e, r)
		}
		for _, p := range [][2]int64{{e.After.P50, r.After.P50}, {e.After.P99, r.After.P99}} {
			if off := math.Abs(float64(p[1]-p[0])) / float64(p[0]); off > 0.004 {
				t.Errorf("%s: %d instead of %d", name, p[1], p[0])
			}
		}
	}
}

// If six steps are all slower than six others, that is a change. Totals come first:
// many short copies lower the mean while they raise the total.
func TestDiffOfFewSteps(t *testing.T) {
	before := recorded{rank: "r", steps: 6, runs: map[string]func(int) int64{"gemm": about(100), "norm": about(300)}}
	after := recorded{rank: "r", steps: 6, runs: map[string]func(int) int64{"gemm": about(600), "norm": about(300)}}
	d := Compare(before.capture(), after.capture(), Options{})
	gemm := find(t, d, "gemm")
	if c := &gemm.Total; c.Sure == "" || math.Abs(c.Change.Ratio-3610.0/610) > 0.001 {
		t.Errorf("%+v: %s", gemm, d.verdict)
	}
	if r := find(t, d, "norm"); r.Changed() {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(d.verdict, "gemm total per step 101 -> 601 ns (x5.9") {
		t.Error(d.verdict)
	}
}

func TestDiffWords(t *testing.T) {
	change := func(ratio, low, high, p float64) *compare.Change {
		c := &compare.Change{}
		if p <= compare.Alpha {
			c.Sure = finding.Certain
		}
		c.Change.Ratio, c.Change.Low, c.Change.High, c.Change.P = ratio, low, high, p
		return c
	}
	nan := math.NaN()
	for _, c := range []struct {
		change *compare.Change
		want   string
	}{
		{change(1.161, 1.142, 1.18, 0.001), "+16.1 % (+14.2 to +18.0)"},
		{change(0.5, 0.25, 0.75, 0.001), "-50.0 % (-75.0 to -25.0)"},
		{change(2.5, 1.9, 3.1, 0.001), "x2.50 (x1.90 to x3.10)"},
		{change(1.161, 0.9, 1.5, 0.3), "~ +16.1 % (-10.0 to +50.0)"},
		{change(1.5, 1.2, math.Inf(1), 0.01), "+50.0 % (+20.0 or more)"},
		{change(0.5, 0, 0.7, 0.01), "-50.0 % (-30.0 or less)"},
		{change(1.161, nan, nan, nan), "? +16.1 %"},
		{change(nan, nan, nan, nan), "-"},
	} {
		if got := c.change.Words(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// If one forward pass has two annotations, the more detailed one counts.
func TestStepsCountOnce(t *testing.T) {
	const execute = "execute_15360_context_15(sq1sk1sqsq1sqsk1)_generation_0(sq0sk0sqsq0sqsk0)"
	for _, test := range []struct {
		what string
		rows []testset.GPURow
		want string // kind, batch, number and ns
	}{
		{"of equals the outer one", []testset.GPURow{{Name: execute, Start: 0, End: 100, Correlation: 0}, {Name: "step[EXTEND bs=15 toks=15360]", Start: 50, End: 90, Correlation: 0}}, "prefill 9-16: 1 of 100"},
		{"the inner one tells the batch", []testset.GPURow{{Name: "step[DECODE]", Start: 0, End: 100, Correlation: 0}, {Name: "step[DECODE bs=2]", Start: 10, End: 40, Correlation: 0}, {Name: "step[DECODE bs=2]", Start: 50, End: 90, Correlation: 0}}, "decode 2: 2 of 70"},
		{"three deep", []testset.GPURow{{Name: "step[MIXED bs=16]", Start: 0, End: 100, Correlation: 0}, {Name: execute, Start: 10, End: 95, Correlation: 0}, {Name: "step[EXTEND bs=15]", Start: 50, End: 90, Correlation: 0}}, "prefill 9-16: 1 of 85"},
		{"they cross", []testset.GPURow{{Name: "step[EXTEND bs=1]", Start: 0, End: 100, Correlation: 0}, {Name: "step[EXTEND bs=1]", Start: 50, End: 150, Correlation: 0}}, "prefill 1: 2 of 200"},
		{"one behind the other", []testset.GPURow{{Name: "step[EXTEND bs=1]", Start: 0, End: 100, Correlation: 0}, {Name: "step[EXTEND bs=1]", Start: 100, End: 150, Correlation: 0}}, "prefill 1: 2 of 150"},
	} {
		set := testset.GPUSetOf(nil, nil, test.rows)
		var got []string
		for _, s := range gpu.Measure(set, gpu.Options{}).Steps {
			got = append(got, fmt.Sprintf("%s %s: %d of %d", profilewalk.StepKinds[s.Kind], s.Batches(), s.Host.N, s.Host.Total))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: %v, want %s", test.what, got, test.want)
		}
		n, total := 0, int64(0)
		for _, s := range readSteps(set, &profilewalk.Options{}) {
			n, total = n+1, total+s.dur
		}
		if counted := fmt.Sprintf("%d of %d", n, total); !strings.HasSuffix(test.want, ": "+counted) {
			t.Errorf("%s: a comparison counts %s, want %s", test.what, counted, test.want)
		}
	}
}
