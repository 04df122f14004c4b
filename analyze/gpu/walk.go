package gpu

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A gpuWalk reads one stream: its ranges first, since calls belong to steps, then its
// calls and kernels, then its copies, since both belong to calls.
type gpuWalk struct {
	opt   *Options
	ranks profilewalk.PerRank[gpuWalkRank]
	calls callTimes
	// ranged takes annotations for a Watch; nil if there is none.
	ranged func(r *profile.Range, step bool)
	knownNames
}

// knownNames hold what names mean, by symbol. They are dropped after the walk, as they have all symbols
// of the set, not only those of the stream.
type knownNames struct {
	classes    *trace.PerName[kernelname.NameClass]
	steps      *trace.PerName[*profilewalk.StepLabel]
	graphs     *trace.PerName[bool] // of calls that launch CUDA graphs
	compiling  *trace.PerName[bool] // of ranges in which code is compiled
	compilers  map[trace.Sym]bool   // of Python functions that compile code; nil if there are none
	migrations *trace.PerName[bool] // of copies that migrate unified memory
	asks       *trace.PerName[bool] // of ranges whose calls ask for collectives
}

// A gpuWalkRank is what a stream recorded of a rank.
type gpuWalkRank struct {
	rankWork
	devices  map[int32]*gpuPart
	launches profilewalk.Launches
	threads  profilewalk.StepThreads
	asked    profilewalk.StepThreads // annotations whose calls ask for collectives, and those nested in them
	asking   []profilewalk.Step      // the same, settled
	askedTo  map[int64]trace.Time    // by thread: until when the last of these lasts
	started  int                     // calls that free memory and in which a library started
}

// An orphan is work whose call was not recorded. Several kernels of one correlation are from a graph:
// no other call launches more than one.
type orphan struct{ kernels, time int64 }

// A gpuPart is what one stream recorded of a device.
type gpuPart struct {
	gpu     *GPU
	rows    gpuRows
	orphans map[int64]orphan // by correlation
	least   int64            // least ns from the end of a call to the start of what it launched; negative if that started before
	copies  copyKinds
}

func newGPUWalk(set *profile.Set, opt *Options) *gpuWalk {
	return &gpuWalk{opt: opt, calls: callTimes{syms: set.Syms}, knownNames: knownNames{
		classes: opt.Classes.Table(set.Syms), steps: profilewalk.StepNames(set.Syms), graphs: profilewalk.GraphLaunches(set.Syms),
		migrations: profilewalk.NamesWith(set.Syms, "Unified "), asks: trace.EachName(set.Syms, asksForCollective), compiling: trace.EachName(set.Syms, compiles)}}
}

func (w *gpuWalk) walk(s profile.Stream) {
	s = profile.Within(s, w.opt.From, w.opt.To)
	s.Ranges(w.addRange)
	if w.compilers != nil {
		s.Frames(w.addFrame)
	}
	for _, r := range w.ranks.All() {
		r.steps = r.threads.Settle()
		r.asking = r.asked.Settle()
	}
	join := profilewalk.Joiner{Call: w.addCall, Work: w.addKernel, Orphan: w.addOrphan}
	join.Run(s, &profilewalk.Options{})
	s.Copies(w.addCopy)
	for _, r := range w.ranks.All() {
		for _, part := range r.devices {
			part.close()
			r.gpus = append(r.gpus, part)
		}
		r.devices, r.launches, r.threads = nil, profilewalk.Launches{}, profilewalk.StepThreads{}
		r.asked, r.asking, r.askedTo = profilewalk.StepThreads{}, nil, nil
	}
	w.calls.close()
	w.knownNames = knownNames{}
}

// close counts the kernels of graphs whose launch is unknown.
func (p *gpuPart) close() {
	p.rows.close()
	for _, o := range p.orphans {
		if o.kernels > 1 {
			p.gpu.GraphKernels += o.kernels
			p.gpu.GraphTime = distribution.AddTimes(p.gpu.GraphTime, o.time)
		}
	}
	p.orphans = nil
}

func (w *gpuWalk) addRange(r *profile.Range) bool {
	if !w.opt.keeps(&r.Event) {
		return true
	}
	rank := w.ranks.At(r.Rank)
	rank.recorded.widen(r.Start, r.Start+trace.Time(r.Dur()))
	kind := w.steps.Of(r.Name)
	if r.Open {
		if kind != nil {
			rank.open = append(rank.open, request.Interval{From: r.Start, To: r.End})
		}
		return true
	}
	if w.ranged != nil {
		w.ranged(r, kind != nil)
	}
	if kind != nil {
		rank.threads.Add(r, kind)
	} else if w.asks.Of(r.Name) {
		rank.asked.Add(r, &profilewalk.StepLabel{StepName: profile.StepName{Batch: -1}})
		if rank.askedTo == nil {
			rank.askedTo = map[int64]trace.Time{}
		}
		rank.askedTo[r.TID] = max(rank.askedTo[r.TID], r.End)
	} else if rank.askedTo[r.TID] > r.Start { // nested annotations do something else
		rank.asked.Add(r, &profilewalk.StepLabel{StepName: profile.StepName{Batch: -1}, Part: true})
	} else if w.compiling.Of(r.Name) {
		rank.host.calls = append(rank.host.calls, HostCall{Start: r.Start, End: r.Start + trace.Time(r.Dur()), TID: r.TID, PID: r.PID, reason: Compiling})
	}
	return true
}

// asksForCollective reports whether the calls in ranges of a name ask for a collective.
func asksForCollective(name string) bool {
	_, asks := kernelname.CollectiveOfAnnotation(name)
	return asks
}

func (w *gpuWalk) addCall(c *profile.Call) {
	rank := w.ranks.At(c.Rank)
	inWindow := w.opt.keeps(&c.Event)
	if inWindow {
		rank.recorded.widen(c.Start, c.Start+trace.Time(c.Dur()))
		rank.first.join(&firstCall{c.Start, c.Dur(), c.Name})
	}
	reason := w.calls.add(c, inWindow, &rank.started)
	row := w.calls.rows.At(int64(c.Name))
	rank.outside = rank.outside || row.outside
	if inWindow {
		rank.launched.calls[row.launches]++
	}
	switch {
	case row.captureBegin:
		rank.marks = append(rank.marks, captureMark{c.Start, true})
	case row.captureMark:
		rank.marks = append(rank.marks, captureMark{c.Start + trace.Time(c.Dur()), false})
	}
	if reason != NoReason {
		rank.host.calls = append(rank.host.calls, HostCall{Start: c.Start, End: c.Start + trace.Time(c.Dur()), TID: c.TID, PID: c.PID, reason: reason})
	}
	if l := rank.launches.Add(c); l != nil {
		l.Step, l.Graph, l.Asks = rank.threads.At(c), w.graphs.Of(c.Name), rank.asks(c)
	}
}

// asks reports whether a call asks for a collective.
func (r *gpuWalkRank) asks(c *profile.Call) bool {
	in := r.asked.At(c)
	return in != profilewalk.NoStep && !r.asking[in].Part
}

// addKernel adds a kernel, unless its call is not known yet.
func (w *gpuWalk) addKernel(k *profile.Kernel) bool {
	l := w.launchOf(&k.Event)
	if l == nil && k.Correlation != 0 {
		return false
	}
	row := w.kernelRow(k, l)
	w.add(&k.Event, k.Device, &row, l)
	return true
}

// addOrphan adds a kernel whose call was not recorded.
func (w *gpuWalk) addOrphan(k *profile.Kernel) {
	row := w.kernelRow(k, nil)
	if part := w.add(&k.Event, k.Device, &row, nil); part != nil && !k.Graph {
		part.addOrphan(k.Correlation, row.dur)
	}
}

// kernelRow returns the row of a kernel without its times. l is the call that launched it, or nil. A
// kernel that no rule matches communicates if it was launched in an annotation of a collective.
func (w *gpuWalk) kernelRow(k *profile.Kernel, l *profilewalk.Launch) gpuRow {
	if k.Graph {
		return gpuRow{stream: int64(k.Stream), class: kernelname.ClassOther, flags: rowKernel | rowGraph}
	}
	name := w.classes.Of(k.Name)
	row := gpuRow{stream: int64(k.Stream), flags: rowKernel, class: name.Class}
	switch {
	case name.Known:
	case l != nil && l.Asks:
		row.class = kernelname.ClassCommunication
	default:
		row.flags |= rowUnknown
	}
	if row.class == kernelname.ClassCompute && k.Grid != 0 {
		row.flags |= rowSized
		row.grid = k.Grid
	}
	return row
}

func (w *gpuWalk) addCopy(c *profile.Copy) bool {
	row := gpuRow{stream: int64(c.Stream), class: kernelname.ClassMemory}
	if w.migrations.Of(c.Name) {
		row.flags = rowMigrated
	}
	if part := w.add(&c.Event, c.Device, &row, w.launchOf(&c.Event)); part != nil {
		part.copies.of(c.Name).add(c)
	}
	return true
}

// launchOf returns the call that launched a kernel or copy, nil if it is not known.
func (w *gpuWalk) launchOf(e *profile.Event) *profilewalk.Launch {
	if e.Correlation == 0 {
		return nil
	}
	return w.ranks.At(e.Rank).launches.Find(e.Correlation)
}

// add completes r, the row of a kernel or copy, with its times and its call, if that is known, and adds
// it. It returns its device, nil if it lies outside the window.
func (w *gpuWalk) add(e *profile.Event, device int32, r *gpuRow, l *profilewalk.Launch) *gpuPart {
	if !w.opt.keeps(e) {
		return nil
	}
	rank := w.ranks.At(e.Rank)
	r.start, r.dur, r.name = e.Start, e.Dur(), e.Name
	rank.recorded.widen(r.start, r.end())
	if l != nil {
		r.flags |= rowCalled
		if l.Graph {
			r.flags |= rowGraph
		}
		r.launch, r.launched = l.Start, l.Dur
		rank.project(l, r)
		r.inStep = l.Step + 1
		r.flags |= rowStep * rowFlags(rank.kindOf(l))
	}
	part := rank.part(device)
	if r.called() && r.flags&rowKernel != 0 {
		rank.launched.rows[launchesKernel+launchKind(r.flags&rowGraph/rowGraph)]++
		part.least = min(part.least, int64(r.start-r.launch)-r.launched)
	}
	part.rows.add(r)
	return part
}

// kindOf returns the kind of the innermost step around a call that has one.
func (r *rankWork) kindOf(l *profilewalk.Launch) profile.StepKind {
	for i := l.Step; i != profilewalk.NoStep; i = r.steps[i].Around {
		if kind := r.steps[i].StepName.Kind; kind != profile.StepOther {
			return kind
		}
	}
	return profile.StepOther
}

func (p *gpuPart) addOrphan(correlation, dur int64) {
	if p.orphans == nil {
		p.orphans = map[int64]orphan{}
	}
	o := p.orphans[correlation]
	p.orphans[correlation] = orphan{o.kernels + 1, distribution.AddTimes(o.time, dur)}
}

// part returns the part of a device, which it creates if needed.
func (r *gpuWalkRank) part(device int32) *gpuPart {
	p := r.devices[device]
	if p == nil {
		p = &gpuPart{gpu: &GPU{Device: device}, copies: copyKinds{}, least: math.MaxInt64}
		if r.devices == nil {
			r.devices = map[int32]*gpuPart{}
		}
		r.devices[device] = p
	}
	return p
}
