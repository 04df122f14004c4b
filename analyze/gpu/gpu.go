package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say how devices are measured.
type Options struct {
	Classes *kernelname.Classes // of kernels; nil is [kernelname.DefaultClasses]
	// From and To restrict the measurement to kernels, copies and steps that overlap [From, To]; 0 is
	// open.
	From, To trace.Time
	// Cuts divide every device into pieces, in order; nil makes none.
	Cuts []trace.Time
	// Gaps, if not nil, is called with every gap of every device in the order of time, for several
	// ranks at once. Its argument is valid until it returns.
	Gaps func(*IdleGap)
	// Watch, if not nil, is told what devices do.
	Watch Watch
}

// keeps reports whether an event lies in the window.
func (o *Options) keeps(e *profile.Event) bool {
	return (o.From == 0 || e.End >= o.From) && (o.To == 0 || e.Start <= o.To)
}

// GPUs are the devices of some ranks, and what they were busy with.
type GPUs struct {
	GPUs    []GPU // by rank and device
	Steps   []StepTime
	Served  []RankSteps        // by rank, for ranks with steps of a server
	Kernels []RankKernel       // the largest excess first
	Graphs  []GraphUse         // of decode steps
	Calls   []CallTime         // calls that hold up their threads or ask for work; the longest total first
	Runs    []request.Interval // of all ranks, in order; hours apart
	Starts  []Start            // of CUDA, by rank
	Unran   Unran
	Cuts    []Cut // by rank

	// How recording slows hosts down: see profile.Set.
	Recorded     []string
	GraphCapture bool

	// Parts are what each run recorded, if there are several, and Files, in a part, the inputs of that run.
	Parts []*GPUs
	Files []string

	ends    []rankEnd
	classes string // name of the kernel classes
	several bool   // a rank has several devices
	// perSecond reports that Kernels compares totals per captured time of the rank.
	perSecond bool
}

// A GPU is a device as one rank used it. Times are in ns. It is busy while kernels or copies run;
// several of one class at once count once.
type GPU struct {
	Rank   string
	Device int32 // as the process numbers it
	// Captured is how long the recordings of the rank lasted: each from its first call, range, kernel
	// or copy to the end of the last. Time between recordings does not count.
	Captured    int64
	First, Last trace.Time // bounds of kernels and copies, and of the steps around them
	Activity               // adds up to Length
	// BySteps divides Activity by the kind of step that launched what ran last, or what ended a gap.
	BySteps [StepKinds]Activity
	Pieces  []Piece // one more than Options.Cuts; nil without cuts
	// Lead and Trail are parts of the idle time: from the beginning of steps to the first kernel or
	// copy, and from the end of the last one to the end of steps.
	Lead, Trail int64
	// Early is how long kernels had started but waited for the communication before them on their
	// stream (programmatic dependent launch): meanwhile, they neither compute nor hide it.
	Early int64

	ahead         trace.Time // how far the clock is ahead of the reference
	began         trace.Time // start of the first row
	Rows, Kernels int64      // kernels and copies; only kernels
	Called        int64      // rows whose call is known
	Migrated      int64      // rows that move pages of unified memory, which no call launches
	// Delay is from the end of the call to the start of the row it launched; 0 if the row began before.
	Delay distribution.Summary
	// Queue is how many rows had been launched but not started, on average over time, in tenths.
	Queue int64
	// KernelTime is the total duration of Kernels, and GraphTime that of GraphKernels, which launches
	// of CUDA graphs started.
	KernelTime, GraphTime, GraphKernels int64
	// UnknownTime is the part of KernelTime in kernels that no rule of the classes matches; they count
	// as compute. OutsideTime is the part in kernels that were launched outside of annotated steps.
	UnknownTime, OutsideTime int64
	// Single is how long nothing but kernels of one block ran, which leave all multiprocessors but one
	// idle.
	Single  int64
	Streams []GPUStream // by number
	Copies  []CopyKind  // the longest total first
	Held    Held
	// Blind means that the files lack all kernels of the rank: calls launched some, or the calls are missing, too. Only its copies
	// are known, and not what it did besides.
	Blind bool

	RankIndex int32
	// unrecorded is the time between recordings: from the last row of each to the first row of the next.
	unrecorded int64
}

// Length returns the time from the first start to the last end of kernels, copies, and steps, summed
// over recordings. Without steps it is kernel_time of Holistic Trace Analysis.
func (g *GPU) Length() int64 { return max(0, distribution.Between(g.First, g.Last)-g.unrecorded) }

// StepKinds is how many kinds of steps there are.
const StepKinds = profile.StepDecode + 1

// An Activity is how long a device ran what, and why it ran nothing otherwise. Times are in ns.
type Activity struct {
	// Running is how long exactly these classes ran at once. The empty set is idle time.
	Running [numRunning]int64
	Idle    Idle
	Waits   Waits // idle time by reason
	Cold    Cold  // part of the idle time
}

// Busy returns how long anything ran.
func (g *Activity) Busy() int64 { return g.Sum(func(r Running) bool { return r != 0 }) }

// IdleTime returns how long nothing ran, in gaps for any cause.
func (g *Activity) IdleTime() int64 { return g.Idle.Total() }

// Total returns busy plus idle time.
func (g *Activity) Total() int64 { return g.Sum(func(Running) bool { return true }) }

// Time returns how long anything of class c ran.
func (g *Activity) Time(c kernelname.Class) int64 {
	return g.Sum(func(r Running) bool { return r.Has(c) })
}

// add adds another activity.
func (g *Activity) add(o *Activity) {
	for r := range g.Running {
		g.Running[r] = distribution.AddTimes(g.Running[r], o.Running[r])
	}
	for c := range g.Idle.Time {
		g.Idle.Time[c] = distribution.AddTimes(g.Idle.Time[c], o.Idle.Time[c])
		g.Idle.Gaps[c] += o.Idle.Gaps[c]
	}
	g.Waits.join(&o.Waits)
	g.Cold.Join(&o.Cold)
}

// exposure lists classes in the order in which they hide each other: useful work first, unknown work
// last.
var exposure = [...]kernelname.Class{kernelname.ClassCompute, kernelname.ClassCommunication, kernelname.ClassMemory, kernelname.ClassOther}

// Exposed returns how long class c ran and no class before it in the order compute,
// communication, memory, other. Those four and the idle time add up to Length.
func (g *Activity) Exposed(c kernelname.Class) int64 {
	var hiding Running
	for _, before := range exposure {
		if before == c {
			break
		}
		hiding |= 1 << before
	}
	return g.Sum(func(r Running) bool { return r.Has(c) && r&hiding == 0 })
}

// Sum adds up the time of the sets of running classes for which of returns true.
func (g *Activity) Sum(of func(Running) bool) int64 {
	total := int64(0)
	for r, t := range g.Running {
		if of(Running(r)) {
			total = distribution.AddTimes(total, t)
		}
	}
	return total
}

// Measure measures what the devices of all ranks were busy with. It reads every
// stream of the set once for each kind of rows, and holds about ten bytes for a
// kernel or copy, and 16 for a call while its stream is read.
func Measure(set *profile.Set, opt Options) *GPUs {
	if opt.Classes == nil {
		opt.Classes = kernelname.DefaultClasses()
	}
	walks, compilers := make([]*gpuWalk, len(set.Streams)), compiledFrames(set.Syms)
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		walks[i] = newGPUWalk(set, &opt)
		walks[i].compilers = compilers
		if opt.Watch != nil {
			walks[i].ranged = opt.Watch.Ranges(i)
		}
		walks[i].walk(s)
	})
	ranks := joinWalks(set, walks)
	watched(opt.Watch, ranks)
	parallel.Each(len(ranks), func(i int) { ranks[i].measure(&opt) })
	g := &GPUs{classes: opt.Classes.Name, Recorded: set.Recorded, GraphCapture: set.GraphCapture, Calls: sumCalls(walks)}
	captured := make([]int64, len(ranks))
	var recorded recordings
	devices, names := 0, 0
	for i := range ranks {
		devices, names = devices+len(ranks[i].gpus), names+len(ranks[i].kernels.names)
	}
	// Appending would take far more memory if there are very many devices or names.
	g.GPUs = make([]GPU, 0, devices)
	kernels := make([]RankKernel, 0, names)
	for i := range ranks {
		r := &ranks[i]
		for k := range r.gpus {
			gpu := r.gpus[k].gpu
			gpu.Copies = r.gpus[k].copies.list(set.Syms)
			g.GPUs = append(g.GPUs, *gpu)
		}
		g.several = g.several || len(r.gpus) > 1
		g.addStart(set, r)
		lost := r.unran()
		g.Unran.add(lost)
		g.cut(set.Ranks[i], lost, r.gpus)
		if opt.From == 0 && opt.To == 0 {
			g.blind(int32(i), lost)
		}
		captured[i] = r.recorded.length()
		recorded = append(recorded, r.aligned...)
		if n := len(r.aligned); n > 0 && len(r.gpus) > 0 {
			g.ends = append(g.ends, rankEnd{set.Ranks[i], r.aligned[0].From, r.aligned[n-1].To})
		}
		kernels = r.kernels.moveTo(kernels, set, int32(i))
		g.Steps = append(g.Steps, groupSteps(set, int32(i), r.steps)...)
		if steps := order.OnlyRows(r.steps, func(s *profilewalk.Step) bool { return s.OfServer() && !s.Again }); len(steps) > 0 {
			graphs := groupGraphs(set, int32(i), steps)
			g.Served = append(g.Served, RankSteps{set.Ranks[i], captured[i], steps, graphs})
			g.Graphs = append(g.Graphs, graphs...)
		}
	}
	g.Runs = recorded.runs()
	slices.SortFunc(g.Steps, func(a, b StepTime) int {
		return cmp.Or(cmp.Compare(profilewalk.StepKinds[b.Kind], profilewalk.StepKinds[a.Kind]), cmp.Compare(a.MinBatch, b.MinBatch), cmp.Compare(a.rankIndex, b.rankIndex))
	})
	g.Kernels, g.perSecond = compareKernels(kernels, captured)
	g.divide(set, walks, ranks)
	return g
}

// A rankWork is what the devices of a rank did.
type rankWork struct {
	gpus     []*gpuPart // by device
	steps    []profilewalk.Step
	open     []request.Interval // steps that were under way when the recording ended
	kernels  kernelTimes
	recorded recordings
	aligned  recordings // the same on the reference clock
	host     hostTimes
	marks    []captureMark
	first    firstCall
	outside  bool // kernels may wait for something other than work of a device
	launched launchCount
}

// joinWalks merges what all streams recorded of each rank.
func joinWalks(set *profile.Set, walks []*gpuWalk) []rankWork {
	ranks := make([]rankWork, len(set.Ranks))
	for _, w := range walks {
		for i, from := range w.ranks.All() {
			to := &ranks[i]
			before := len(to.steps)
			to.addSteps(from.steps)
			to.recorded = append(to.recorded, from.recorded...)
			to.open = append(to.open, from.open...)
			to.host.calls = append(to.host.calls, from.host.calls...)
			to.marks = append(to.marks, from.marks...)
			to.first.join(&from.first)
			to.outside = to.outside || from.outside
			to.launched.add(&from.launched)
			for _, part := range from.gpus {
				to.join(part, before)
			}
		}
	}
	for i, waits := range set.HostWaits {
		for _, w := range waits {
			reason := Meeting
			if w.First {
				reason = ProfilerStart
			}
			ranks[i].host.calls = append(ranks[i].host.calls, HostCall{Start: w.From, End: w.To, TID: w.TID, PID: w.PID, reason: reason})
		}
	}
	for i := range ranks {
		ranks[i].recorded = request.Union(ranks[i].recorded)
		ranks[i].aligned = ranks[i].recorded.onReference(set, int32(i))
		for _, part := range ranks[i].gpus {
			part.gpu.Rank, part.gpu.RankIndex = set.Ranks[i], int32(i)
			part.gpu.Captured = ranks[i].recorded.length()
			if n := len(ranks[i].recorded); n > 0 {
				part.gpu.ahead = ranks[i].recorded[0].From - ranks[i].aligned[0].From
			}
		}
	}
	return ranks
}

// addSteps adds the steps of a stream.
func (r *rankWork) addSteps(steps []profilewalk.Step) {
	before := int32(len(r.steps))
	for _, s := range steps {
		if s.Around != profilewalk.NoStep {
			s.Around += before
		}
		r.steps = append(r.steps, s)
	}
}

// join adds what a stream recorded of a device. steps is how many steps of the rank precede those that its rows count from.
func (r *rankWork) join(part *gpuPart, steps int) {
	at, found := slices.BinarySearchFunc(r.gpus, part.gpu.Device, func(p *gpuPart, d int32) int { return cmp.Compare(p.gpu.Device, d) })
	if !found {
		for i := range part.rows.runs {
			part.rows.runs[i].steps = int32(steps)
		}
		r.gpus = slices.Insert(r.gpus, at, part)
		return
	}
	to := r.gpus[at]
	to.rows.join(&part.rows, steps)
	to.least = min(to.least, part.least)
	to.gpu.GraphKernels += part.gpu.GraphKernels
	to.gpu.GraphTime = distribution.AddTimes(to.gpu.GraphTime, part.gpu.GraphTime)
	to.copies.join(part.copies)
}

// measure sweeps over the rows of all devices of the rank.
func (r *rankWork) measure(opt *Options) {
	r.host.calls = append(r.host.calls, r.captures()...)
	r.host.order(r.steps, r.open)
	spans := r.workSpans(opt)
	for _, part := range r.gpus {
		s := newGPUSweep(part, r, spans, opt)
		busy := stepBusy{steps: r.steps, until: make([]trace.Time, len(r.steps))}
		part.rows.drain(func(row *gpuRow) {
			s.add(row)
			busy.add(row)
		})
		s.finish()
		if s.watch != nil {
			s.watch.Done()
		}
	}
	r.kernels.summarize()
	r.host = hostTimes{}
}

// Length returns the sum of the lengths of all devices, in ns: GPU time.
func (g *GPUs) Length() int64 { return g.Total((*GPU).Length) }

// Total returns the sum of a time of each device, in ns.
func (g *GPUs) Total(of func(*GPU) int64) (total int64) {
	return distribution.SumTimes(order.EachRow(g.GPUs, func(x *GPU) int64 { return of(x) }))
}

// Ran reports whether any device ran kernels or copies.
func (g *GPUs) Ran() bool {
	return slices.ContainsFunc(g.GPUs, func(d GPU) bool { return d.Rows > 0 })
}

// OnlyCommunication reports whether only communication kernels were recorded, and none of the calls
// that launched them: somebody filtered the recording, so whatever else devices did is unknown.
// Programs that only communicate, such as benchmarks of collectives, are recorded with their calls.
func (g *GPUs) OnlyCommunication() bool {
	communicated := func(d *GPU) int64 { return d.Time(kernelname.ClassCommunication) }
	return g.Total(communicated) > 0 && !slices.ContainsFunc(g.GPUs, func(d GPU) bool { return d.Called > 0 || d.Busy() > communicated(&d) })
}

// Bounds returns when the first device began to work and the last one stopped, on the reference clock.
func (g *GPUs) Bounds() (from, to trace.Time) {
	for i := range g.GPUs {
		if gpu := &g.GPUs[i]; i == 0 {
			from, to = gpu.First-gpu.ahead, gpu.Last-gpu.ahead
		} else {
			from, to = min(from, gpu.First-gpu.ahead), max(to, gpu.Last-gpu.ahead)
		}
	}
	return from, to
}
