package gpu

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// gpuReports are all reports on devices.
var gpuReports = map[string]func(*GPUs) *table.Table{
	"gpus": (*GPUs).Report, "idle": (*GPUs).IdleReport, "overlap": (*GPUs).OverlapReport,
	"streams": (*GPUs).StreamReport, "shares": (*GPUs).StepShareReport, "steps": (*GPUs).StepReport, "kernels": (*GPUs).KernelReport,
}

// randomGPUs returns random kernels of all classes, on several streams and devices, in steps.
func randomGPUs(r *rand.Rand, syms *trace.Symbols) *testset.RowStream {
	s := testset.RandomStream(r, syms)
	name := func(names ...string) trace.Sym { return syms.Intern(names[r.IntN(len(names))]) }
	for i := range s.KernelRows {
		k := &s.KernelRows[i]
		k.Name = name("gemm", "norm", "ncclDevKernel_AllReduce", "Memset (Device)")
		k.Stream = uint32(r.IntN(3))
	}
	for i := range s.RangeRows {
		s.RangeRows[i].Name = name("step[DECODE bs=3]", "step[DECODE bs=4]", "step[EXTEND bs=9 toks=3]", "ProfilerStep#1", "other", "sglang:step[IDLE bs=0]")
	}
	return s
}

// eachGPUs calls f for some random sets.
func eachGPUs(t *testing.T, f func(t *testing.T, r *rand.Rand, syms *trace.Symbols, s *testset.RowStream)) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			syms := trace.NewSymbols()
			f(t, r, syms, randomGPUs(r, syms))
		})
	}
}

var twoRanks = []string{"rank 0", "rank 1"}

// Results depend neither on the order of rows, nor on the streams that hold them,
// nor on the numbers of symbols.
func TestGPUsIgnoreOrder(t *testing.T) {
	eachGPUs(t, func(t *testing.T, r *rand.Rand, syms *trace.Symbols, s *testset.RowStream) {
		same := func(what string, got *profile.Set, want map[string]string) {
			for name, g := range reportTexts(t, got) {
				if w := want[name]; g != w {
					t.Fatalf("%s of rows that were %s:\n%s\nwant\n%s", name, what, g, w)
				}
			}
		}
		want := reportTexts(t, testset.SetOf(syms, twoRanks, s))
		same("shuffled", testset.SetOf(syms, twoRanks, s.Shuffled(r)), want)
		same("renamed", testset.Renumbered(s, syms, twoRanks), want)
		same("split by rank", testset.SetOf(syms, twoRanks, s.Split(func(e *profile.Event) bool { return e.Rank == 0 })...), want)
		s.RangeRows = nil // calls must stay in the same stream as their steps
		want = reportTexts(t, testset.SetOf(syms, twoRanks, s))
		same("split by launch", testset.SetOf(syms, twoRanks, s.Split(func(e *profile.Event) bool { return e.Correlation%2 == 0 })...), want)
	})
}

// reportTexts returns all reports about a set, with several options.
func reportTexts(t *testing.T, set *profile.Set) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for i, opt := range []Options{{}, {Classes: kernelname.HTAClasses()}, {From: 100, To: 300}} {
		measured := Measure(set, opt)
		for name, report := range gpuReports {
			texts[fmt.Sprintf("%s, options %d", name, i)] = testset.CSV(t, report(measured))
		}
	}
	return texts
}

// The parts of a device's time add up to the whole.
func TestGPUTimeAddsUp(t *testing.T) {
	eachGPUs(t, func(t *testing.T, r *rand.Rand, syms *trace.Symbols, s *testset.RowStream) {
		for _, g := range Measure(testset.SetOf(syms, twoRanks, s), Options{}).GPUs {
			sum := g.Idle.Total()
			for _, c := range exposure {
				sum += g.Exposed(c)
				if g.Exposed(c) > g.Time(c) || g.Time(c) > g.Busy() {
					t.Errorf("%s: %v is exposed for %d ns of %d ns, busy for %d ns", g.Rank, c, g.Exposed(c), g.Time(c), g.Busy())
				}
			}
			reasons, gaps := int64(0), int64(0)
			for reason, t := range g.Waits.Time {
				reasons, gaps = reasons+t, gaps+g.Waits.Gaps[reason]
			}
			if reasons != g.Idle.Total() || gaps != g.Idle.Gaps[HostWait]+g.Idle.Gaps[KernelWait]+g.Idle.Gaps[OtherWait] {
				t.Errorf("%s: %d ns idle, by reason %v", g.Rank, g.Idle.Total(), g.Waits.Time)
			}
			if sum != g.Length() || g.Busy()+g.Idle.Total() != g.Length() || g.Length() > g.Captured {
				t.Errorf("%s: length %d, parts %d, busy %d, idle %d, captured %d", g.Rank, g.Length(), sum, g.Busy(), g.Idle.Total(), g.Captured)
			}
			var steps Activity
			for i := range g.BySteps {
				steps.add(&g.BySteps[i])
			}
			if steps != g.Activity {
				t.Errorf("%s: steps add up to %+v, want %+v", g.Rank, steps, g.Activity)
			}
			for _, st := range g.Streams {
				if st.Busy+st.Idle.Total() != st.Length() {
					t.Errorf("%s stream %d: length %d, busy %d, idle %d", g.Rank, st.Stream, st.Length(), st.Busy, st.Idle.Total())
				}
			}
		}
	})
}

// A definedGPU measures a device moment by moment, as docs/METRICS.md defines it.
type definedGPU struct {
	running [numRunning]int64
	idle    Idle
	delays  []int64
	graphs  int64
}

// definedRow is a kernel or copy with its call.
type definedRow struct {
	profile.Event
	class         kernelname.Class
	kernel, whole bool // whole: a graph
	call          *profile.Call
	stream        uint32
}

// works returns the time at which a row begins to work: a kernel first waits for
// communication on its stream that began before it and ends before it does.
func (r *definedRow) works(rows []definedRow) trace.Time {
	last := trace.Time(0)
	for _, o := range rows {
		if o.kernel && o.class == kernelname.ClassCommunication && o.stream == r.stream && o.Start < r.Start {
			last = max(last, o.End)
		}
	}
	if r.kernel && r.class != kernelname.ClassCommunication && r.Start < last && last <= r.End {
		return last
	}
	return r.Start
}

func definedRows(s *testset.RowStream, syms *trace.Symbols, rank, device int32) []definedRow {
	var rows []definedRow
	callOf := func(e *profile.Event) *profile.Call {
		var found *profile.Call
		for i := range s.CallRows {
			if c := &s.CallRows[i]; e.Correlation != 0 && c.Correlation == e.Correlation && c.Rank == e.Rank && (found == nil || c.Start < found.Start) {
				found = c
			}
		}
		return found
	}
	classes := kernelname.DefaultClasses()
	for _, k := range s.KernelRows {
		if k.Rank == rank && k.Device == device {
			class := kernelname.ClassOther
			if !k.Graph {
				class, _ = classes.Of(syms.Name(k.Name))
			}
			rows = append(rows, definedRow{k.Event, class, true, k.Graph, callOf(&k.Event), k.Stream})
		}
	}
	for _, c := range s.CopyRows {
		if c.Rank == rank && c.Device == device {
			rows = append(rows, definedRow{c.Event, kernelname.ClassMemory, false, false, callOf(&c.Event), c.Stream})
		}
	}
	return rows
}

func define(rows []definedRow, syms *trace.Symbols) *definedGPU {
	d := &definedGPU{}
	var moments []trace.Time
	alone := map[int64]int64{} // kernels without a known call, by correlation
	works := make([]trace.Time, len(rows))
	for i, r := range rows {
		works[i] = r.works(rows)
		moments = append(moments, r.Start, works[i], r.End)
		if r.kernel && !r.whole && r.call == nil && r.Correlation != 0 {
			alone[r.Correlation]++
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	for i := 1; i < len(moments); i++ {
		from, to := moments[i-1], moments[i]
		var running Running
		for k, r := range rows {
			if works[k] <= from && r.End >= to {
				running |= 1 << r.class
			}
		}
		d.running[running] += int64(to - from)
		if running != 0 {
			continue
		}
		cause, launched := OtherWait, false
		if to-from < kernelGap {
			cause = KernelWait
		}
		for _, r := range rows {
			if r.Start == to && r.call != nil {
				launched = launched || r.call.Start <= from
				if cause = HostWait; launched {
					cause = OtherWait
				}
			}
		}
		if cause == OtherWait && to-from < kernelGap {
			cause = KernelWait
		}
		d.idle.Time[cause] += int64(to - from)
		d.idle.Gaps[cause]++
	}
	for _, r := range rows {
		graph := r.whole || alone[r.Correlation] > 1
		if r.call != nil {
			d.delays = append(d.delays, max(0, int64(r.Start-r.call.End)))
			graph = r.whole || syms.Name(r.call.Name) == "cudaGraphLaunch_v10000"
		}
		if r.kernel && graph {
			d.graphs++
		}
	}
	return d
}

// The measures of every device equal a brute-force evaluation of their definitions.
func TestGPUsAsDefined(t *testing.T) {
	eachGPUs(t, func(t *testing.T, r *rand.Rand, syms *trace.Symbols, s *testset.RowStream) {
		n := 0
		s.RangeRows = nil // TestEdgesOfSteps covers what steps add
		for _, g := range Measure(testset.SetOf(syms, twoRanks, s), Options{}).GPUs {
			rows := definedRows(s, syms, g.RankIndex, g.Device)
			d := define(rows, syms)
			n += len(rows)
			if g.Running != d.running || g.Idle != d.idle || g.Delay != distribution.Summarize(d.delays) || g.GraphKernels != d.graphs || int(g.Rows) != len(rows) {
				t.Errorf("%s device %d:\n got %v %v %v %d graphs\nwant %v %v %v %d graphs", g.Rank, g.Device,
					g.Running, g.Idle, g.Delay, g.GraphKernels, d.running, d.idle, distribution.Summarize(d.delays), d.graphs)
			}
		}
		if n != len(s.KernelRows)+len(s.CopyRows) {
			t.Errorf("%d rows of %d", n, len(s.KernelRows)+len(s.CopyRows))
		}
	})
}

// Packed rows unpack to the same rows, in order.
func TestGPURows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var rows, others gpuRows
	var want []gpuRow
	const stepsBefore = 300 // steps of other ranks
	for i := range 5 * bufferedRows / 2 {
		row := gpuRow{start: trace.Time(int64(i)*10 + r.Int64N(1e5)), dur: r.Int64N(1000), stream: r.Int64N(3) - 1,
			name: trace.Sym(r.IntN(1000)), class: kernelname.Class(r.IntN(4)), flags: rowFlags(r.IntN(3 * int(rowStep)))}
		if row.called() {
			row.launch, row.launched = row.start+trace.Time(r.Int64N(200)-100), r.Int64N(50)
			row.inStep = r.Int32N(stepsBefore)
		}
		if i%3 == 0 {
			others.add(&row)
			if row.inStep > 0 {
				row.inStep += stepsBefore
			}
		} else {
			rows.add(&row)
		}
		want = append(want, row)
	}
	rows.close()
	others.close()
	rows.join(&others, stepsBefore)
	var got []gpuRow
	n := rows.n
	rows.drain(func(r *gpuRow) { got = append(got, *r) })
	if !slices.IsSortedFunc(got, func(a, b gpuRow) int { return compareRows(&a, &b) }) {
		t.Error("not in order")
	}
	all := func(a, b gpuRow) int {
		return cmp.Or(compareRows(&a, &b), cmp.Compare(a.dur, b.dur), cmp.Compare(a.name, b.name), cmp.Compare(a.stream, b.stream),
			cmp.Compare(a.class, b.class), cmp.Compare(a.flags, b.flags), cmp.Compare(a.launched, b.launched), cmp.Compare(a.inStep, b.inStep))
	}
	slices.SortFunc(got, all)
	slices.SortFunc(want, all)
	if !slices.Equal(got, want) || n != len(want) {
		t.Errorf("%d rows of %d, or others", len(got), len(want))
	}
}

// The busy time of a step is the number of ns in which anything ran that the step,
// or a step within it, launched.
func TestStepBusy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const length = 2000
	steps := []profilewalk.Step{{Around: profilewalk.NoStep, End: length}, {Around: 0, End: length}, {Around: 1, End: 600}, {Around: profilewalk.NoStep, End: length}}
	var rows []gpuRow
	ran := make([][length]bool, len(steps))
	for range 60 {
		row := gpuRow{start: trace.Time(r.Int64N(length - 100)), dur: r.Int64N(100), launched: 10, inStep: r.Int32N(int32(len(steps)) + 1)}
		row.launch = row.start / 2
		rows = append(rows, row)
		for i := row.inStep - 1; i >= 0; i = steps[i].Around {
			if row.launch+10 <= steps[i].End {
				for at := row.start; at < row.end(); at++ {
					ran[i][at] = true
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b gpuRow) int { return compareRows(&a, &b) })
	busy := stepBusy{steps: steps, until: make([]trace.Time, len(steps))}
	for i := range rows {
		busy.add(&rows[i])
	}
	for i := range steps {
		want := int64(0)
		for _, is := range ran[i] {
			if is {
				want++
			}
		}
		if steps[i].Busy != want || want == 0 {
			t.Errorf("step %d: busy %d ns, want %d", i, steps[i].Busy, want)
		}
	}
}
