package host

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/kernel"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Rows yields the stacks in order.
func (s *Stacks) Rows(of TimeOf) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for _, at := range s.rows[of] {
			if !yield(Row{s, of, at}) {
				return
			}
		}
	}
}

// An entered is a frame of any kind, as the oracle sees it.
type entered struct {
	from, to trace.Time
	name     string
	rank     int32
	tid      int64
	number   int // smaller for outer frames
}

// A playground makes threads whose frames nest, with launches among them.
type playground struct {
	r           *rand.Rand
	syms        *trace.Symbols
	stream      testset.RowStream
	all         []entered
	launches    map[int64]entered
	correlation int64
}

const (
	ranks, threads = 2, 2
	end            = trace.Time(400)
)

func newPlayground(seed uint64) *playground {
	return &playground{r: rand.New(rand.NewPCG(seed, 4)), syms: trace.NewSymbols(), launches: map[int64]entered{}}
}

func (p *playground) set() *profile.Set {
	return testset.SetOf(p.syms, []string{"TP0", "TP1"}, p.stream.Shuffled(p.r))
}

// fill fills a time span of a thread with nested frames: ranges around Python around operators around calls.
func (p *playground) fill(rank int32, tid int64, from, to trace.Time, kinds string, depth int) {
	for now := from; now < to && depth > 0; {
		start := now + trace.Time(p.r.IntN(4))
		end := start + 1 + trace.Time(p.r.IntN(1+int(to-from)/2))
		if end > to {
			return
		}
		kind := kinds[p.r.IntN(len(kinds))]
		p.enter(rank, tid, start, end, kind)
		if kind != 'c' {
			p.fill(rank, tid, start, end-1, kinds[strings.IndexByte(kinds, kind):], depth-1)
		}
		now = end
	}
}

// frameNames are names of frames by kind. The part that varies from call to call follows a bar.
var frameNames = map[byte][]string{
	'r': {"load", "run;fast", "ProfilerStep|#12"},
	'p': {"sglang/worker.py(8): forward", "threading.py(320): wait", "<built-in method item of Tensor| object at 0x7f12|>", "nn.Module: Linear|_3"},
	'o': {"aten::item", "aten::mm"},
	'c': {"cudaLaunchKernel", "cudaMemcpyAsync"},
}

func (p *playground) enter(rank int32, tid int64, from, to trace.Time, kind byte) {
	parts := strings.Split(frameNames[kind][p.r.IntN(len(frameNames[kind]))], "|")
	same := parts[0]
	if len(parts) == 3 {
		same += parts[2]
	}
	one := entered{from, to, same, rank, tid, len(p.all)}
	p.all = append(p.all, one)
	e := profile.Event{Start: from, End: to, Name: p.syms.Intern(strings.Join(parts, "")), Rank: rank, PID: 7}
	switch kind {
	case 'r':
		p.stream.RangeRows = append(p.stream.RangeRows, profile.Range{Event: e, TID: tid})
	case 'p':
		p.stream.FrameRows = append(p.stream.FrameRows, profile.Frame{Event: e, TID: tid, Kind: profile.PythonFrame})
	case 'o':
		p.stream.FrameRows = append(p.stream.FrameRows, profile.Frame{Event: e, TID: tid, Kind: profile.OperatorFrame})
	case 'c':
		p.correlation++
		e.Correlation = p.correlation
		if p.r.IntN(8) > 0 { // else it was not recorded
			p.stream.CallRows = append(p.stream.CallRows, profile.Call{Event: e, TID: tid})
			p.launches[e.Correlation] = one
		} else {
			p.all = p.all[:len(p.all)-1]
		}
		p.launch(e)
	}
}

// launch makes the work that a call launched.
func (p *playground) launch(call profile.Event) {
	start := call.Start + trace.Time(p.r.IntN(90))
	e := profile.Event{Start: start, End: start + trace.Time(p.r.IntN(50)), Name: p.syms.Intern("k"), Rank: call.Rank, PID: 7, Correlation: call.Correlation}
	if p.r.IntN(3) == 0 {
		p.stream.CopyRows = append(p.stream.CopyRows, profile.Copy{Event: e})
	} else {
		p.stream.KernelRows = append(p.stream.KernelRows, profile.Kernel{Event: e})
	}
}

// stack returns the frames around a thread at a time, the outermost first.
func (p *playground) stack(rank int32, tid int64, at trace.Time) []string {
	var in []entered
	for _, e := range p.all {
		if e.rank == rank && e.tid == tid && e.from <= at && at < e.to {
			in = append(in, e)
		}
	}
	slices.SortFunc(in, func(a, b entered) int { return a.number - b.number })
	var names []string
	for _, e := range in {
		names = append(names, strings.ReplaceAll(e.name, ";", ":"))
	}
	return names
}

// expected counts every moment of every thread, and all work, according to the definitions.
func (p *playground) expected(byRank bool) (want [numOf]map[string]int64) {
	of := func(rank int32, stack []string) string {
		if byRank {
			stack = append([]string{fmt.Sprint("TP", rank)}, stack...)
		}
		return strings.Join(stack, ";")
	}
	want = [numOf]map[string]int64{{}, {}}
	for rank := range int32(ranks) {
		for tid := range int64(threads) {
			for now := range end {
				if stack := p.stack(rank, tid, now); stack != nil {
					if strings.HasPrefix(stack[len(stack)-1], "threading.py") {
						stack = append(stack, "(idle)")
					}
					want[CPU][of(rank, stack)]++
				}
			}
		}
	}
	work := func(e *profile.Event) {
		stack := []string{"(launch not recorded)"}
		if call, ok := p.launches[e.Correlation]; ok {
			stack = p.stack(call.rank, call.tid, call.from)
			// Several calls may begin at that moment: the launching call is the last that contains it.
			stack = stack[:slices.Index(stack, call.name)+1]
		}
		if ns := e.Dur(); ns > 0 {
			want[GPU][of(e.Rank, append(stack, "k"))] += ns
		}
	}
	for i := range p.stream.KernelRows {
		work(&p.stream.KernelRows[i].Event)
	}
	for i := range p.stream.CopyRows {
		work(&p.stream.CopyRows[i].Event)
	}
	return want
}

// Every moment of a thread counts for the frames around it, and all work counts for
// the frames around its launch, in any order of the stream's rows.
func TestStacksMomentByMoment(t *testing.T) {
	seen := 0
	for seed := range uint64(30) {
		p := newPlayground(seed)
		for rank := range int32(ranks) {
			for tid := range int64(threads) {
				p.fill(rank, tid, 1, end, "rpoc", 6)
			}
		}
		set := p.set()
		for _, byRank := range []bool{false, true} {
			s := Sum(set, profilewalk.Options{ByRank: byRank}, nil)
			for of, want := range p.expected(byRank) {
				got := map[string]int64{}
				for row := range s.Rows(TimeOf(of)) {
					if _, twice := got[row.stack()]; twice {
						t.Fatalf("seed %d: two rows of %s", seed, row.stack())
					}
					got[row.stack()] = row.self()
				}
				if !maps.Equal(got, want) {
					t.Fatalf("seed %d, %s, by rank %v:\n got %v\nwant %v", seed, names[of], byRank, got, want)
				}
				seen += len(want)
			}
			checkTotals(t, s)
		}
		checkWork(t, set)
	}
	if seen < 5_000 {
		t.Errorf("%d stacks are too few to tell", seen)
	}
}

// checkTotals checks the totals of stacks against the sum over all stacks with that prefix.
func checkTotals(t *testing.T, s *Stacks) {
	t.Helper()
	for of := range numOf {
		sums := map[string]int64{}
		for row := range s.Rows(of) {
			stack := row.stack()
			sums[stack] += row.self()
			for !row.activity().waits() && strings.Contains(stack, ";") {
				stack = stack[:strings.LastIndexByte(stack, ';')]
				sums[stack] += row.self()
			}
		}
		for row := range s.Rows(of) {
			if want := sums[row.stack()]; row.total() != want {
				t.Errorf("%s: total %d, want %d", row.stack(), row.total(), want)
			}
		}
	}
}

// checkWork compares sums with the reports on kernels and copies.
func checkWork(t *testing.T, set *profile.Set) {
	t.Helper()
	got, want := int64(0), int64(0)
	for r := range Sum(set, profilewalk.Options{}, nil).Rows(GPU) {
		got += r.self()
	}
	for _, r := range kernel.SumKernels(set, profilewalk.Options{}).Rows {
		want += r.Distribution.Total
	}
	for _, r := range kernel.SumCopies(set, profilewalk.Options{}).Rows {
		want += r.Time.Total
	}
	if got != want {
		t.Errorf("work adds up to %d ns, of kernels and copies that took %d", got, want)
	}
}

// If frames cross, or a window cuts them, stacks still add up to the time that a thread spent in any frame.
func TestSumIsTheTimeCovered(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 200 {
		p := newPlayground(r.Uint64())
		covered := map[[2]int64]bool{}
		from, to := trace.Time(r.IntN(100)), trace.Time(200+r.IntN(200))
		for range 1 + r.IntN(30) {
			start, tid := 1+trace.Time(r.IntN(300)), int64(r.IntN(threads))
			stop := start + 1 + trace.Time(r.IntN(90))
			p.enter(0, tid, start, stop, "rpo"[r.IntN(3)])
			for now := max(start, from); now < min(stop, to); now++ {
				covered[[2]int64{tid, int64(now)}] = true
			}
		}
		sum := int64(0)
		for row := range Sum(p.set(), profilewalk.Options{From: from, To: to}, nil).Rows(CPU) {
			sum += row.self()
		}
		if sum != int64(len(covered)) {
			t.Fatalf("stacks add up to %d ns of %d", sum, len(covered))
		}
	}
}

// stack returns the row's whole stack, and total its time including the stacks that extend it.
func (r Row) stack() string { return table.FoldStack(r.names()) }
func (r Row) total() int64  { return r.s.totals[r.of][r.at] }
