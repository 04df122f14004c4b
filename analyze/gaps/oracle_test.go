package gaps_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// An entered is a frame of any kind, as the oracle sees it.
type entered struct {
	from, to trace.Time
	name     string
	kind     byte // range, Python, operator, or call
	tid      int64
}

// A playground makes threads whose frames nest, with launches among them.
type playground struct {
	r           *rand.Rand
	syms        *trace.Symbols
	stream      testset.RowStream
	all         []entered
	correlation int64
	stacks      *profile.Stacks      // of calls
	seen        map[int64][]seenAt   // by thread, in order of time
	running     map[int64][][2]int64 // of threads with known running times, in order
}

// fill fills a time span of a thread with nested frames: ranges around Python around operators around calls.
func (p *playground) fill(tid int64, from, to trace.Time, kinds string, depth int) {
	for now := from; now < to && depth > 0; {
		start := now + trace.Time(p.r.IntN(4))
		end := start + 1 + trace.Time(p.r.IntN(1+int(to-from)/3))
		if end > to {
			return
		}
		kind := kinds[p.r.IntN(len(kinds))]
		p.enter(tid, start, end, kind)
		if kind != 'c' {
			p.fill(tid, start+1, end-1, kinds[strings.IndexByte(kinds, kind):], depth-1)
		}
		now = end
	}
}

var frameNames = map[byte][]string{
	'r': {"load", "run"},
	'p': {"sglang/scheduler.py(3): run", "sglang/worker.py(8): forward", "torch/nn/functional.py(5): linear", "<built-in method item of Tensor object at 0x7f12>", "nn.Module: Linear_3"},
	'o': {"aten::item", "aten::linear", "aten::mm"},
	'c': {"cudaLaunchKernel", "cudaStreamSynchronize", "cudaMalloc", "cudaMemcpy", "cudaEventRecord"},
}

func (p *playground) enter(tid int64, from, to trace.Time, kind byte) {
	name := frameNames[kind][p.r.IntN(len(frameNames[kind]))]
	if kind != 'c' {
		p.all = append(p.all, entered{from, to, name, kind, tid})
	}
	e := profile.Event{Start: from, End: to, Name: p.syms.Intern(name), PID: 7}
	switch kind {
	case 'r':
		p.stream.RangeRows = append(p.stream.RangeRows, profile.Range{Event: e, TID: tid})
	case 'p':
		p.stream.FrameRows = append(p.stream.FrameRows, profile.Frame{Event: e, TID: tid, Kind: profile.PythonFrame})
	case 'o':
		p.stream.FrameRows = append(p.stream.FrameRows, profile.Frame{Event: e, TID: tid, Kind: profile.OperatorFrame})
	case 'c':
		if p.r.IntN(3) == 0 {
			p.backtrace(tid, from, to)
		}
		p.correlation++
		p.all = append(p.all, entered{from, to, name, kind, tid})
		e.Correlation = p.correlation
		p.stream.CallRows = append(p.stream.CallRows, profile.Call{Event: e, TID: tid})
		if name == "cudaLaunchKernel" {
			k := profile.Event{Start: from + trace.Time(p.r.IntN(9)), Correlation: e.Correlation, Name: p.syms.Intern("k"), PID: 7}
			k.End = k.Start + 1 + trace.Time(p.r.IntN(20))
			p.stream.KernelRows = append(p.stream.KernelRows, profile.Kernel{Event: k})
		}
	}
}

// defined returns what a thread did at a moment. It checks every frame and, if
// bySight, also the samples of the thread in the gap.
func (p *playground) defined(tid int64, gap, at trace.Time, bySight bool) string {
	var stack []entered
	for _, e := range p.all {
		if e.tid == tid && e.from <= at && at < e.to {
			stack = append(stack, e)
		}
	}
	slices.SortStableFunc(stack, func(a, b entered) int { return int(a.from - b.from) })
	var call, operator, function, frame, span, off string
	own, vague := -1, true
	for i, e := range stack {
		if e.kind == 'p' && strings.HasPrefix(e.name, "sglang") {
			own, frame = i, e.name
		}
	}
	for i, e := range stack {
		vague = vague && e.kind == 'r'
		switch {
		case e.kind == 'b' && frame == "":
			frame, function, span = e.name, "", ""
		case e.kind == 'c' && i == len(stack)-1:
			call = e.name
		case e.kind == 'o' && operator == "":
			operator = e.name
		case e.kind == 'r' && own < 0:
			span = e.name
		case e.kind == 'p' && i > own && !strings.HasPrefix(e.name, "nn.") && (function == "" || own < 0):
			function = strings.ReplaceAll(e.name, " object at 0x7f12", "")
		}
	}
	if bySight && (vague || call == "" || call == "cudaLaunchKernel") && p.isOff(tid, at) {
		off = "off"
	} else if s := p.seenAt(tid, gap, at); bySight && vague && s != nil {
		function, frame = s.function, s.frame
	}
	if operator != "" {
		function = ""
	}
	return strings.Join([]string{call, operator, function, frame, span, off}, "|")
}

// expected counts every moment of every gap according to the definition.
func (p *playground) expected(late []gpu.IdleGap) map[string]int64 {
	sums := map[string]int64{}
	for _, g := range late {
		launcher := int64(-1)
		for _, c := range p.stream.CallRows {
			if c.Start == g.Launch && c.Dur() == g.Launched {
				launcher = c.TID
			}
		}
		for _, part := range g.Parts {
			for now := part.From; now < part.To; now++ {
				site := "|||||"
				if g.Late {
					tid, at := launcher, min(now, g.Launch)
					if part.Called && part.Reason != gpu.AfterSync {
						tid, at = part.By.TID, now
					}
					site = p.defined(tid, g.From, at, at < g.Launch || tid != launcher || part.Called && part.Reason != gpu.AfterSync)
				}
				sums[gpu.ReasonWords[part.Reason]+"|"+site]++
			}
		}
	}
	return sums
}

// Every moment of a gap is attributed to the stack of the thread that launched late or is to blame.
func TestCausesMomentByMoment(t *testing.T) {
	lateParts, seen := 0, map[host.Activity]int64{}
	for seed := range uint64(150) {
		p := &playground{r: rand.New(rand.NewPCG(seed, 1)), syms: trace.NewSymbols()}
		for tid := range int64(2) {
			p.fill(tid, 1, 500, "rpoc", 7)
		}
		p.watch()
		shuffled := p.stream.Shuffled(p.r)
		shuffled.SampleRows = p.stream.SampleRows // a profiler interrupts in order
		set := testset.SetOf(p.syms, []string{"TP0"}, shuffled)
		var found []gpu.IdleGap
		collector := gaps.Collect(set)
		gpus := gpu.Measure(set, gpu.Options{Gaps: func(g *gpu.IdleGap) {
			one := *g
			one.Parts = slices.Clone(g.Parts)
			found = append(found, one)
			collector.Add(g)
		}})
		if ambiguous(p) {
			continue
		}
		g := collector.Measure(gaps.Options{})
		got, idle := map[string]int64{}, int64(0)
		for _, c := range g.Causes {
			off := ""
			if c.Activity == host.OffCPU {
				off = "off"
			}
			got[strings.Join([]string{gpu.ReasonWords[c.Reason], c.Call, c.Operator, c.Function, c.Frame, c.Range, off}, "|")] += c.Time
			seen[c.Activity] += c.Samples
		}
		for i := range gpus.GPUs {
			idle += gpus.GPUs[i].Idle.Total()
		}
		want := p.expected(found)
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, listed(got), listed(want))
		}
		if g.Idle != idle {
			t.Errorf("seed %d: causes add up to %d ns of %d idle", seed, g.Idle, idle)
		}
		lateParts += len(want)
	}
	if lateParts < 1000 {
		t.Errorf("%d causes are too few to tell", lateParts)
	}
	if len(seen) < 3 || seen[host.InNative] < 40 || seen[host.InPython] < 30 || seen[host.NotRecorded] > 0 {
		t.Errorf("samples by what they tell: %v", seen)
	}
}

// ambiguous reports whether two calls began together and took equally long, so that
// either may have launched the work.
func ambiguous(p *playground) bool {
	seen := map[[2]int64]bool{}
	for _, c := range p.stream.CallRows {
		key := [2]int64{int64(c.Start), c.Dur()}
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

func listed(sums map[string]int64) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "\n  %s %d", key, sums[key])
	}
	return b.String()
}
