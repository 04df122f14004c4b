package gaps_test

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A seenAt is a sample of a thread, as the oracle sees it.
type seenAt struct {
	at              trace.Time
	function, frame string
}

// watched are stacks, the outermost function first, each with its module, and the function that they blame.
var watched = []struct {
	stack [][2]string
	seenAt
}{
	{[][2]string{{"main", "/opt/server"}, {"float fill<int>(float*, int)", "/opt/server"}, {"memset", "/usr/lib/libc.so.6"}}, seenAt{function: "memset()", frame: "fill()"}},
	{[][2]string{{"[Broken backtraces]", "[Broken backtraces]"}, {"main", "/opt/server"}}, seenAt{frame: "main()"}},
	{[][2]string{{"[libcuda.so.1]", "/usr/lib64/libcuda.so.1"}}, seenAt{function: "[libcuda.so.1]"}},
	{[][2]string{{"py::run:/srv/loop.py", "//anon"}, {"_PyEval_Vector", "/usr/lib/libpython3.12.so.1.0"}}, seenAt{function: "_PyEval_Vector()", frame: "run() (loop.py)"}},
	{[][2]string{{"run", "/srv/loop.py"}, {"wait", "/usr/lib/python3.12/threading.py"}}, seenAt{function: "wait() (threading.py)", frame: "run() (loop.py)"}},
	{[][2]string{{"main", "/opt/server"}, {"std::vector<int>::at(unsigned long)", "/opt/server"}, {"cudaError cudaMalloc<int>(int**)", "/opt/server"}},
		seenAt{function: "cudaMalloc()", frame: "main()"}},
}

// push adds one of the watched stacks.
func (p *playground) push(stacks *profile.Stacks, i int) (id profile.StackID) {
	for _, f := range watched[i].stack {
		id = stacks.Push(profile.StackFrame{Caller: id, Function: p.syms.Intern(f[0]), Module: p.syms.Intern(f[1])})
	}
	return id
}

// backtrace gives a call its stack, in which only the program's function adds information.
func (p *playground) backtrace(tid int64, from, to trace.Time) {
	if p.stacks == nil {
		p.stacks = &profile.Stacks{}
	}
	i := p.r.IntN(3)
	p.stream.TraceRows = append(p.stream.TraceRows, profile.Sample{Event: profile.Event{Start: from, End: to, PID: 7}, TID: tid,
		Stack: p.push(p.stacks, i), Stacks: p.stacks})
	if frame := watched[i].frame; frame != "" {
		p.all = append(p.all, entered{from, to, frame, 'b', tid})
	}
}

// watch samples both threads, if the recording has samples, and sometimes takes away their cores.
func (p *playground) watch() {
	p.seen, p.running = map[int64][]seenAt{}, map[int64][][2]int64{}
	stacks := &profile.Stacks{}
	for tid := range int64(2) {
		for now := trace.Time(p.r.IntN(20)); now < 520 && p.r.IntN(40) > 0; now += trace.Time(8 + p.r.IntN(3)*p.r.IntN(20)) {
			i := p.r.IntN(len(watched))
			seen := watched[i].seenAt
			seen.at = now
			p.seen[tid] = append(p.seen[tid], seen)
			p.stream.SampleRows = append(p.stream.SampleRows, profile.Sample{Event: profile.Event{Start: now, End: now, PID: 7}, TID: tid,
				Stack: p.push(stacks, i), Stacks: stacks})
		}
		if p.r.IntN(2) == 0 {
			continue
		}
		for now := int64(p.r.IntN(60)); now < 520; {
			end := now + 1 + p.r.Int64N(60)
			p.running[tid] = append(p.running[tid], [2]int64{now, end})
			p.stream.RunRows = append(p.stream.RunRows, profile.Run{Event: profile.Event{Start: trace.Time(now), End: trace.Time(end), PID: 7}, TID: tid})
			now = end + p.r.Int64N(30)
		}
	}
}

// isOff reports whether a thread is known to have had no core at a time: threads of the process ran before and afterward.
func (p *playground) isOff(tid int64, at trace.Time) bool {
	before, later := false, false
	for _, runs := range p.running {
		for _, r := range runs {
			before, later = before || r[0] <= int64(at), later || r[1] > int64(at)
		}
	}
	runs, known := p.running[tid]
	return before && later && known && !slices.ContainsFunc(runs, func(r [2]int64) bool { return r[0] <= int64(at) && int64(at) < r[1] })
}

// period returns the lower quartile of the times between samples.
func (p *playground) period() trace.Time {
	var times []trace.Time
	for _, samples := range p.seen {
		for i := 1; i < len(samples); i++ {
			times = append(times, samples[i].at-samples[i-1].at)
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)/4]
}

// seenAt returns the last sample of a thread in a gap. It returns nil if there is none, if the
// sample is a period old, or if a frame of the thread began or ended after it.
func (p *playground) seenAt(tid int64, gap, at trace.Time) (last *seenAt) {
	for i := range p.seen[tid] {
		if s := &p.seen[tid][i]; s.at <= at && at < s.at+p.period() && s.at >= gap {
			last = s
		}
	}
	if last != nil && slices.ContainsFunc(p.all, func(e entered) bool {
		return e.tid == tid && (last.at < e.from && e.from <= at || last.at < e.to && e.to <= at)
	}) {
		return nil
	}
	return last
}
