package operators

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A playground makes threads with nested operators, and with launches in and beside them.
type playground struct {
	r           *rand.Rand
	syms        *trace.Symbols
	stream      testset.RowStream
	correlation int64
	python      bool              // also makes Python functions
	counted     profile.FrameKind // kind of frames that expected counts
}

func (p *playground) event(rank int32, from, to trace.Time, name string) profile.Event {
	return profile.Event{Start: from, End: to, Name: p.syms.Intern(name), Rank: rank, PID: 7}
}

// fill fills a time span of a thread with operators and calls.
func (p *playground) fill(rank int32, tid int64, from, to trace.Time, depth int) {
	for now := from; now < to && depth > 0; {
		start := now + trace.Time(p.r.IntN(4))
		end := start + 1 + trace.Time(p.r.IntN(1+int(to-from)/2))
		if end > to {
			return
		}
		switch n := p.r.IntN(6); {
		case n < 2:
			p.launch(rank, tid, start, end)
		case n == 2 && p.python:
			f := profile.Frame{Event: p.event(rank, start, end, pythonNames[p.r.IntN(len(pythonNames))]), TID: tid, Kind: profile.PythonFrame}
			p.stream.FrameRows = append(p.stream.FrameRows, f)
			p.fill(rank, tid, start+1, end-1, depth-1)
		default:
			f := profile.Frame{Event: p.event(rank, start, end, []string{"aten::to", "aten::mm", "aten::linear"}[p.r.IntN(3)]), TID: tid}
			f.Shapes = p.syms.Intern([]string{"[[1]]", "[[2]]"}[p.r.IntN(2)])
			p.stream.FrameRows = append(p.stream.FrameRows, f)
			p.fill(rank, tid, start+1, end-1, depth-1)
		}
		now = end
	}
}

// pythonNames are names of functions: two of a server, and two that are not informative.
var pythonNames = []string{"sglang/srt/managers/scheduler.py(10): run", "sglang/srt/sampler.py(7): sample", "torch/nn/modules/module.py(5): _call_impl", "<built-in method to of Tensor>"}

// launch makes a call and the work that it launched, mostly kernels.
func (p *playground) launch(rank int32, tid int64, from, to trace.Time) {
	p.correlation++
	name := []string{"cudaLaunchKernel", "cudaGraphLaunch"}[p.r.IntN(2)]
	c := profile.Call{Event: p.event(rank, from, to, name), TID: tid}
	c.Correlation = p.correlation
	if p.r.IntN(8) > 0 { // else it was not recorded
		p.stream.CallRows = append(p.stream.CallRows, c)
	}
	for range 1 + p.r.IntN(2) {
		start := from + trace.Time(p.r.IntN(90))
		e := p.event(rank, start, start+trace.Time(p.r.IntN(50)), "k")
		e.Correlation = p.correlation
		if p.r.IntN(5) == 0 {
			p.stream.CopyRows = append(p.stream.CopyRows, profile.Copy{Event: e, Bytes: p.r.Int64N(9) - 1, Kind: profile.CopyKind{From: profile.Memory(p.r.IntN(3)), To: profile.DeviceMemory}})
		} else {
			p.stream.KernelRows = append(p.stream.KernelRows, profile.Kernel{Event: e})
		}
	}
}

// A tally holds the oracle's numbers for a row.
type tally struct{ calls, selfCPU, cpu, selfGPU, gpu, work int64 }

// stack returns the counted frames around a thread at a time; the innermost, which began last, is last.
func (p *playground) stack(rank int32, tid int64, at trace.Time) []*profile.Frame {
	return p.frames(rank, tid, at, p.counted)
}

func (p *playground) frames(rank int32, tid int64, at trace.Time, kind profile.FrameKind) []*profile.Frame {
	var in []*profile.Frame
	for i := range p.stream.FrameRows { // outer frames were made first
		if f := &p.stream.FrameRows[i]; f.Kind == kind && f.Rank == rank && f.TID == tid && f.Start <= at && at < f.End {
			in = append(in, f)
		}
	}
	return in
}

// expected counts every moment and all work according to the definitions.
func (p *playground) expected(key func(*profile.Frame) string) map[string]tally {
	sums := map[string]tally{}
	add := func(stack []*profile.Frame, self, all func(*tally)) {
		seen := map[string]bool{}
		for i, f := range stack {
			k := key(f)
			t := sums[k]
			if i == len(stack)-1 {
				self(&t)
			}
			if !seen[k] {
				all(&t)
			}
			seen[k] = true
			sums[k] = t
		}
	}
	for rank := range int32(2) {
		for tid := range int64(2) {
			for now := range trace.Time(400) {
				add(p.stack(rank, tid, now), func(t *tally) { t.selfCPU++ }, func(t *tally) { t.cpu++ })
			}
		}
	}
	for i := range p.stream.FrameRows {
		if f := &p.stream.FrameRows[i]; f.Kind == p.counted {
			t := sums[key(f)]
			t.calls++
			sums[key(f)] = t
		}
	}
	work := func(e *profile.Event) {
		stack, other := []*profile.Frame(nil), "(launch not recorded)"
		for _, c := range p.stream.CallRows {
			if c.Correlation == e.Correlation {
				stack = p.stack(c.Rank, c.TID, c.Start)
				other = map[string]string{"cudaLaunchKernel": "(no operator)", "cudaGraphLaunch": "(CUDA graph)"}[p.syms.Name(c.Name)]
			}
		}
		if stack == nil {
			stack = []*profile.Frame{{Event: profile.Event{Name: p.syms.Intern(other), Rank: e.Rank}}}
		}
		add(stack, func(t *tally) { t.work++; t.selfGPU += e.Dur() }, func(t *tally) { t.gpu += e.Dur() })
	}
	for i := range p.stream.KernelRows {
		work(&p.stream.KernelRows[i].Event)
	}
	for i := range p.stream.CopyRows {
		work(&p.stream.CopyRows[i].Event)
	}
	return sums
}

// Operators match the definitions, counted moment by moment, by name, by rank, and
// by shapes, in any order of the stream's rows.
func TestOperatorsMomentByMoment(t *testing.T) {
	rows := 0
	for seed := range uint64(60) {
		p := &playground{r: rand.New(rand.NewPCG(seed, 2)), syms: trace.NewSymbols()}
		for rank := range int32(2) {
			for tid := range int64(2) {
				p.fill(rank, tid, 1, 400, 5)
			}
		}
		set := testset.SetOf(p.syms, []string{"TP0", "TP1"}, p.stream.Shuffled(p.r))
		name := func(f *profile.Frame) string { return p.syms.Name(f.Name) }
		pooled, byRank := Sum(set, profilewalk.Options{}), Sum(set, profilewalk.Options{ByRank: true})
		rows += compare(t, seed, "pooled", pooled.Names, p.expected(name))
		rows += compare(t, seed, "by rank", byRank.Names, p.expected(func(f *profile.Frame) string { return fmt.Sprint("TP", f.Rank, " ", name(f)) }))
		rows += compare(t, seed, "shapes", byRank.Shapes, operatorsOf(p.expected(func(f *profile.Frame) string {
			return fmt.Sprint("TP", f.Rank, " ", name(f), nameOf(set, f.Shapes))
		})))
	}
	if rows < 1000 {
		t.Errorf("%d rows are too few to tell", rows)
	}
}

// operatorsOf drops the row for work that no operator launched.
func operatorsOf(sums map[string]tally) map[string]tally {
	maps.DeleteFunc(sums, func(_ string, t tally) bool { return t.calls == 0 })
	return sums
}

// compare returns the number of rows.
func compare(t *testing.T, seed uint64, what string, rows []Row, want map[string]tally) int {
	t.Helper()
	got := map[string]tally{}
	for _, r := range rows {
		key := r.Row.Name + r.Shapes
		if r.Row.Rank != "" {
			key = r.Row.Rank + " " + key
		}
		got[key] = tally{r.Calls, r.SelfCPU, r.CPU, r.SelfGPU, r.GPU, r.Work}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("seed %d, %s:\n got %+v\nwant %+v", seed, what, got, want)
	}
	return len(got)
}

// expectedCopies counts copies by the operators that launched them, according to the definitions.
func (p *playground) expectedCopies() map[string]profilewalk.Copied {
	sums := map[string]profilewalk.Copied{}
	for i := range p.stream.CopyRows {
		c := &p.stream.CopyRows[i]
		operator, function := "(launch not recorded)", ""
		for _, call := range p.stream.CallRows {
			if call.Correlation != c.Correlation {
				continue
			}
			operator = map[string]string{"cudaLaunchKernel": "(no operator)", "cudaGraphLaunch": "(CUDA graph)"}[p.syms.Name(call.Name)]
			if in := p.stack(call.Rank, call.TID, call.Start); len(in) > 0 {
				operator = p.syms.Name(in[len(in)-1].Name)
			}
			for _, f := range p.frames(call.Rank, call.TID, call.Start, profile.PythonFrame) {
				if name := p.syms.Name(f.Name); strings.HasPrefix(name, "sglang") {
					function = name
				}
			}
		}
		key := fmt.Sprint("TP", c.Rank, operator, function, c.Kind)
		sum := sums[key]
		sum.Add(c)
		sums[key] = sum
	}
	return sums
}

// Copies by launching operator match the definitions, and add up to the bytes that operators copied.
func TestCopiesByLaunch(t *testing.T) {
	rows := 0
	for seed := range uint64(60) {
		p := &playground{r: rand.New(rand.NewPCG(seed, 4)), syms: trace.NewSymbols(), python: true}
		for rank := range int32(2) {
			for tid := range int64(2) {
				p.fill(rank, tid, 1, 400, 6)
			}
		}
		set := testset.SetOf(p.syms, []string{"TP0", "TP1"}, p.stream.Shuffled(p.r))
		got, pooled := map[string]profilewalk.Copied{}, profilewalk.Copied{}
		for _, r := range Sum(set, profilewalk.Options{ByRank: true}).Copies {
			got[r.Row.Rank+r.Row.Name+r.Function+r.Kind.String()] = r.Copied
			rows++
		}
		want := p.expectedCopies()
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, got, want)
		}
		for _, r := range Sum(set, profilewalk.Options{}).Copies {
			pooled.Join(&r.Copied)
		}
		for _, sum := range want {
			pooled.N, pooled.Time, pooled.Bytes = pooled.N-sum.N, pooled.Time-sum.Time, pooled.Bytes-sum.Bytes
		}
		if pooled.N != 0 || pooled.Time != 0 || pooled.Bytes != 0 {
			t.Errorf("seed %d: pooled rows do not add up: %+v", seed, pooled)
		}
	}
	if rows < 300 {
		t.Errorf("%d rows are too few to tell", rows)
	}
}

// Operators are the same whether PyTorch's profiler recorded them or emit_nvtx made them NVTX ranges.
func TestEmittedOperators(t *testing.T) {
	found := 0
	for seed := range uint64(50) {
		p := &playground{r: rand.New(rand.NewPCG(seed, 2)), syms: trace.NewSymbols()}
		for rank := range int32(2) {
			p.fill(rank, 3, 1, 400, 5)
		}
		want := Sum(testset.SetOf(p.syms, []string{"TP0", "TP1"}, &p.stream), profilewalk.Options{ByRank: true})
		emitted := p.stream
		emitted.FrameRows = nil
		for i, f := range p.stream.FrameRows {
			e := f.Event
			shapes := strings.ReplaceAll(p.syms.Name(f.Shapes), ",", ", ")
			e.Name = p.syms.Intern(fmt.Sprintf("%s, seq = %d, op_id = %d, sizes = %s, input_op_ids = [(%d,0)]", p.syms.Name(e.Name), i%7, i+1, shapes, i))
			emitted.RangeRows = append(emitted.RangeRows, profile.Range{Event: e, TID: f.TID},
				profile.Range{Event: p.event(e.Rank, e.Start, e.End, "forward"), TID: f.TID})
		}
		got := Sum(testset.SetOf(p.syms, []string{"TP0", "TP1"}, &emitted), profilewalk.Options{ByRank: true})
		if !slices.Equal(got.Names, want.Names) || !slices.Equal(got.Shapes, want.Shapes) {
			t.Fatalf("seed %d: got %+v\nwant %+v", seed, got.Shapes, want.Shapes)
		}
		found += len(want.Shapes)
	}
	if found < 100 {
		t.Errorf("%d rows are too few", found)
	}
}
