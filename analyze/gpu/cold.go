package gpu

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// A codeLoad sums up the first launches of kernels that took so long that they must have loaded code.
// Total and Longest are in ns.
type codeLoad struct{ N, Total, Longest int64 }

func (l *codeLoad) join(o *codeLoad) {
	l.N += o.N
	l.Total = distribution.AddTimes(l.Total, o.Total)
	l.Longest = max(l.Longest, o.Longest)
}

// Cold is the part of idle time that a process has once and not while it serves or trains:
// the host loads code, compiles, or records a CUDA graph. Time is by reason, ns.
type Cold struct {
	Time [NumReasons]int64
	Gaps int64 // gaps that are cold, at least in part
	// Spread reports that some of these gaps come after the device has been busy for long.
	Spread bool
	// Longest is the longest of these gaps.
	Longest Gap
	Loads   codeLoad
}

// Total returns the time of all reasons, in ns.
func (c *Cold) Total() int64 {
	total := int64(0)
	for _, t := range c.Time {
		total = distribution.AddTimes(total, t)
	}
	return total
}

// AtStart reports whether all of these gaps come before the device has been busy for long.
func (c *Cold) AtStart() bool { return !c.Spread && c.Gaps <= maxGaps }

// Join adds the cold time of another device, or of other steps.
func (c *Cold) Join(o *Cold) {
	for reason, t := range o.Time {
		c.Time[reason] = distribution.AddTimes(c.Time[reason], t)
	}
	c.Gaps += o.Gaps
	c.Spread = c.Spread || o.Spread
	c.Loads.join(&o.Loads)
	if o.Longest.Length() > c.Longest.Length() {
		c.Longest = o.Longest
	}
}

// Cold reports whether the reason belongs to a process that starts.
func (r Reason) Cold() bool { return r >= Capturing && r <= Modules }

// slowLaunch is how long the first launch of a kernel must take, ns, to have loaded its code: a launch
// takes microseconds, and while the device is idle it need not wait for a place in the queue.
const slowLaunch = 1_000_000

// A gapSum is a gap of a device, divided by reason.
type gapSum struct {
	Gap
	parts  [NumReasons]int64 // ns
	step   int               // kind of the step that it counts for
	before int64             // ns for which kernels had run before it
	load   int64             // ns of the launch that ended it, if that loaded code
}

// coldTime returns the time of cold reasons, and of calls that allocate memory: the first of them
// creates the context.
func (g *gapSum) coldTime() int64 {
	total := g.parts[Allocation]
	for reason := Capturing; reason <= Modules; reason++ {
		total = distribution.AddTimes(total, g.parts[reason])
	}
	return total
}

// startup finds the gaps in which a process starts. Gaps that are cold by their reasons are counted one
// by one. Beyond them, if a few gaps are nearly all of the idle time and come before the device has
// done real work, they are the start, provided that cold reasons are much of them or they come before
// the first kernel: what the host does between two libraries that it loads is part of the start.
type startup struct {
	longest []gapSum // the longest first
	gaps    int64
	worked  int64 // ns so far in which kernels ran: copies before them only bring their data
}

// Thresholds of startup.
const (
	maxGaps     = 64 // longest gaps that are kept
	nearlyAll   = 0.9
	fewGapsPart = 0.01 // share of all gaps that counts as few, but no fewer than fewGaps
	fewGaps     = 3
	earlyPart   = 0.1 // of the time for which kernels run
	enoughCold  = 0.3 // of the time of the startup's gaps
)

// add takes a gap.
func (s *startup) add(g *gapSum) {
	s.gaps++
	if n := len(s.longest); n == maxGaps && s.longest[n-1].Length() >= g.Length() {
		return
	}
	g.before = s.worked
	at, _ := slices.BinarySearchFunc(s.longest, g.Length()-1, func(l gapSum, length int64) int { return cmp.Compare(length, l.Length()) })
	s.longest = slices.Insert(s.longest, at, *g)
	s.longest = s.longest[:min(len(s.longest), maxGaps)]
}

// settle adds the gaps of the start that cold reasons do not explain, and drops code that is loaded again and again.
func (s *startup) settle(g *GPU) {
	idle := int64(0)
	for i := range g.BySteps {
		idle = distribution.AddTimes(idle, g.BySteps[i].Idle.Total())
	}
	for i := range s.longest {
		if gap := &s.longest[i]; gap.mostlyCold() && float64(gap.before) > earlyPart*float64(s.worked) {
			g.BySteps[gap.step].Cold.Spread = true
		}
	}
	var again [StepKinds]bool
	for i := range g.BySteps {
		again[i] = g.BySteps[i].Cold.leaveOutSpread()
	}
	sum, cold, n, first := int64(0), int64(0), 0, true
	for n < len(s.longest) && float64(sum) < nearlyAll*float64(idle) {
		gap := &s.longest[n]
		if float64(gap.before) > earlyPart*float64(s.worked) {
			return
		}
		sum, cold = distribution.AddTimes(sum, gap.Length()), distribution.AddTimes(cold, gap.coldTime())
		first = first && gap.beforeFirst()
		n++
	}
	few := max(fewGaps, int64(fewGapsPart*float64(s.gaps)))
	if int64(n) > few || float64(sum) < nearlyAll*float64(idle) || float64(cold) < enoughCold*float64(sum) && !first {
		return
	}
	for i := range s.longest[:n] {
		gap := &s.longest[i]
		of := &g.BySteps[gap.step].Cold
		if gap.coldTime() == gap.parts[Allocation] || again[gap.step] { // else it is counted already
			of.addGap(gap)
		}
		for reason, t := range gap.parts {
			if !Reason(reason).Cold() || again[gap.step] && Reason(reason) == Modules {
				of.Time[reason] = distribution.AddTimes(of.Time[reason], t)
			}
		}
	}
}

// leaveOutSpread turns loads of code that recur throughout into ordinary idle time: the process is at
// work. It reports whether it did.
func (c *Cold) leaveOutSpread() bool {
	again := c.Spread && c.Gaps > fewGaps
	if again {
		c.Time[Modules] = 0
	}
	if c.Total() == 0 {
		*c = Cold{}
	}
	return again
}

// beforeFirst reports whether no kernel had run, and calls loaded code in the gap: once a process has
// launched kernels, it has its code. Profilers may not show what a library does between such calls.
func (g *gapSum) beforeFirst() bool { return g.before == 0 && g.parts[Modules] > g.load }

// mostlyCold reports whether cold reasons explain half of the gap or more.
func (g *gapSum) mostlyCold() bool {
	return 2*(g.coldTime()-g.parts[Allocation]) >= g.Length()
}

// addCold adds the cold parts of a gap.
func (c *Cold) addCold(g *gapSum) {
	for reason := Capturing; reason <= Modules; reason++ {
		c.Time[reason] = distribution.AddTimes(c.Time[reason], g.parts[reason])
	}
	if g.load > 0 {
		c.Loads.join(&codeLoad{1, g.load, g.load})
	}
	if g.coldTime() > g.parts[Allocation] {
		c.addGap(g)
	}
}

func (c *Cold) addGap(g *gapSum) {
	c.Gaps++
	if g.Length() > c.Longest.Length() {
		c.Longest = g.Gap
	}
}

// A captureMark is the call that begins or ends the capture of a CUDA graph. What is launched between
// the two does not run.
type captureMark struct {
	at    trace.Time
	begin bool
}

// captureMarkOf reports whether calls of a name begin or end the capture of a graph (mark), and whether they begin it.
// It recognizes all versions: cudaStreamBeginCapture_v10000, cuStreamBeginCaptureToGraph, cuStreamEndCapture_ptsz.
func captureMarkOf(name string) (begin, mark bool) {
	begin = strings.Contains(name, "StreamBeginCapture")
	return begin, begin || strings.Contains(name, "StreamEndCapture")
}

// captures returns the times in which graphs were captured, as calls that hold up the host. A capture
// that began before the recording, or ends after it, is cut there.
func (r *rankWork) captures() (calls []HostCall) {
	slices.SortFunc(r.marks, func(a, b captureMark) int { return cmp.Compare(a.at, b.at) })
	if len(r.recorded) == 0 {
		return nil
	}
	open, from := 0, r.recorded[0].From
	if len(r.marks) > 0 && !r.marks[0].begin {
		open = 1
	}
	add := func(to trace.Time) {
		calls = append(calls, HostCall{Start: from, End: to, reason: Capturing, nobody: true})
	}
	for _, m := range r.marks {
		switch {
		case m.begin && open == 0:
			open, from = 1, m.at
		case m.begin:
			open++
		case open > 0:
			if open--; open == 0 {
				add(m.at)
			}
		}
	}
	if open > 0 {
		add(r.recorded[len(r.recorded)-1].To)
	}
	return calls
}

// compiles reports whether code is compiled in ranges of a name: PyTorch's "backend_compile
// (dynamo_timed)", or any name with a word for it. "Torch-Compiled Region" runs code that was compiled
// earlier.
func compiles(name string) bool {
	if strings.HasPrefix(name, "CUDAGraphNode.record") {
		return false
	}
	if strings.HasSuffix(name, "(dynamo_timed)") {
		return true
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if slices.Contains(compileWords, word) {
			return true
		}
	}
	return false
}

// compileWords are words in names of ranges in which code is compiled.
var compileWords = []string{"compile", "compiling", "compilation", "autotune", "autotuning", "recompile"}
