package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// coldStart tells of the time in which a process starts, if that is much: it says nothing
// about how the process serves or trains.
func (g *GPUs) coldStart(t *gpuTime) []finding.Finding {
	cold := t.cold.Total()
	share := t.part(cold)
	if share < muchCold {
		return nil
	}
	most := t.cold.largest()[0]
	if most == Capturing && 2*t.cold.Time[Capturing] >= t.length {
		text := fmt.Sprintf("this is the recording of a CUDA graph: for %.0f %% of the time the host captures what it launches, and nothing of that runs", 100*t.part(t.cold.Time[Capturing]))
		f := shareFinding(StartTopic, "cold start", share, text, g.coldReasons(t), g.busyApart(t))
		f.Severity = finding.Info
		return []finding.Finding{f}
	}
	idle := int64(0)
	for i := range g.GPUs {
		idle = distribution.AddTimes(idle, g.GPUs[i].Activity.Idle.Total())
	}
	where := ""
	if !t.cold.Spread && t.cold.Gaps <= mostGaps {
		where = " at the start"
	}
	text := fmt.Sprintf("%s idle %s of the time, and %s of that %s %s%s, %s; for the rest of the time, %s %s busy", g.are(), percent(idle, t.length),
		percent(cold, idle), words.IsOrAre(int(t.cold.Gaps)), words.Counted(int(t.cold.Gaps), "gap"), where, g.coldClause(t, most), g.are(), percent(t.warm()-(idle-cold), t.warm()))
	f := shareFinding(StartTopic, "cold start", share, text, g.coldReasons(t), g.loads(t), g.callEvidence(most), g.longestCold(t))
	if 2*t.cold.loads.time >= cold {
		f.Confidence = finding.Likely // nothing but its length tells that a launch loads code
	}
	return []finding.Finding{f}
}

// coldClause says what the host does in gaps of a start that are mostly for a reason.
func (g *GPUs) coldClause(t *gpuTime, r Reason) string {
	if r == Modules && g.mostlyStarts(t) {
		return "while CUDA, or a library of it, starts"
	}
	return strings.Replace(reasonClauses[r], "because ", "while ", 1)
}

// mostlyStarts reports whether CUDA, or a library of it, starts in most of the time for which code
// is loaded.
func (g *GPUs) mostlyStarts(t *gpuTime) bool {
	starts := int64(0)
	for i := range g.Calls {
		if g.Calls[i].Starts {
			starts = distribution.AddTimes(starts, g.Calls[i].Time)
		}
	}
	return 2*starts >= t.cold.Time[Modules]
}

// largest returns the reasons: those that are known to be cold, that of most of the time first,
// and what the host does between.
func (c *Cold) largest() []Reason {
	var list []Reason
	for reason, t := range c.Time {
		if t > 0 {
			list = append(list, Reason(reason))
		}
	}
	vague := func(r Reason) int { // what is not known to be cold comes last
		if r.Cold() || r == Allocation {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(vague(a), vague(b)), cmp.Compare(c.Time[b], c.Time[a]))
	})
	return list
}

func (g *GPUs) coldReasons(t *gpuTime) finding.Evidence {
	var parts []string
	for _, reason := range t.cold.largest() {
		if share := t.part(t.cold.Time[reason]); share >= 0.01 {
			what := ReasonWords[reason]
			if reason == Modules && g.mostlyStarts(t) {
				what = "starting CUDA, " + what
			}
			parts = append(parts, fmt.Sprintf("%s %.0f %%", what, 100*share))
		}
	}
	return finding.Sentence("cold, by reason: %s of the time", strings.Join(parts, ", "))
}

// loads tells of first launches that load code.
func (g *GPUs) loads(t *gpuTime) finding.Evidence {
	l := &t.cold.loads
	if l.n == 0 {
		return finding.Evidence{}
	}
	return finding.Sentence("the first launch of %s takes %s, %s at most in one: it loads code", words.Counted(int(l.n), "kernel"), words.Nearly(l.time), words.Nearly(l.longest))
}

func (g *GPUs) longestCold(t *gpuTime) finding.Evidence {
	text := "longest of these gaps " + words.Nearly(t.cold.longest.Length())
	if t.cold.longest.From > absolute {
		text += " at " + words.At(t.cold.longest.From, words.ClockLayout)
	}
	return finding.Sentence("%s", text)
}

// busyApart tells how busy devices are apart from the start.
func (g *GPUs) busyApart(t *gpuTime) finding.Evidence {
	busy := int64(0)
	for i := range g.GPUs {
		busy = distribution.AddTimes(busy, g.GPUs[i].Busy())
	}
	return finding.Sentence("for the rest of the time, %s, %s %s busy", words.Nearly(t.warm()), g.are(), percent(busy, t.warm()))
}

// percent writes a part with as many digits as tell it from all and nothing.
func percent(part, whole int64) string {
	share := 100 * distribution.Fraction(part, whole)
	if share > 99 && part < whole || share < 1 && part > 0 {
		return fmt.Sprintf("%.1f %%", share)
	}
	return fmt.Sprintf("%.0f %%", share)
}

// eagerLaunch is how long a host takes at most to launch an operator of Python, ns. One that
// takes longer does something else.
const eagerLaunch = 100_000

// smallKernels tells that kernels are too short for a host that launches them one by one.
func (g *GPUs) smallKernels() finding.Evidence {
	n, time, length := int64(0), int64(0), int64(0)
	for i := range g.GPUs {
		gpu := &g.GPUs[i]
		n += gpu.Kernels
		time, length = distribution.AddTimes(time, gpu.KernelTime), distribution.AddTimes(length, gpu.Length()-gpu.Cold.Total()-gpu.Lead-gpu.Trail)
	}
	if n < 2 || time == 0 || 2*time > length || length/n > eagerLaunch {
		return finding.Evidence{}
	}
	return finding.Sentence("kernels take %s on average, and one is launched every %s: larger batches or CUDA graphs help, faster kernels do not", words.Nearly(time/n), words.Nearly(length/n))
}

// A codeLoad is the first launches of kernels that take so long that they load code.
type codeLoad struct{ n, time, longest int64 } // ns

func (l *codeLoad) join(o *codeLoad) {
	l.n += o.n
	l.time = distribution.AddTimes(l.time, o.time)
	l.longest = max(l.longest, o.longest)
}

// Cold is the part of idle time that a process has once and not while it serves or trains:
// the host loads code, compiles, or records a CUDA graph. Time is by reason, ns.
type Cold struct {
	Time [NumReasons]int64
	Gaps int64      // of which some part is cold
	Last trace.Time // when the last of these ended; 0 if there is none
	// Spread tells that some of these come after the device has been busy for long.
	Spread bool
	// longest is the longest of these gaps.
	longest Gap
	loads   codeLoad
}

// Total returns the time of all reasons, in ns.
func (c *Cold) Total() int64 {
	total := int64(0)
	for _, t := range c.Time {
		total = distribution.AddTimes(total, t)
	}
	return total
}

func (c *Cold) join(o *Cold) {
	for reason, t := range o.Time {
		c.Time[reason] = distribution.AddTimes(c.Time[reason], t)
	}
	c.Gaps += o.Gaps
	c.Last, c.Spread = max(c.Last, o.Last), c.Spread || o.Spread
	c.loads.join(&o.loads)
	if o.longest.Length() > c.longest.Length() {
		c.longest = o.longest
	}
}

// Cold reports whether the reason is one of a process that starts.
func (r Reason) Cold() bool { return r >= Capturing && r <= Modules }

// slowLaunch is from how long on the first launch of a kernel loads its code, ns: a launch
// takes microseconds, and while the device is idle none waits for a place in its queue.
const slowLaunch = 1_000_000

// A gapSum is a gap of a device by reason.
type gapSum struct {
	Gap
	parts  [NumReasons]int64 // ns
	step   int               // kind of the step that it counts for
	before int64             // ns for which kernels had run
	load   int64             // ns that the launch took that ended it, if it loads code
}

// coldTime returns the time of reasons that are cold, and of calls that take memory: the first
// of them makes the context.
func (g *gapSum) coldTime() int64 {
	total := g.parts[Allocation]
	for reason := Capturing; reason <= Modules; reason++ {
		total = distribution.AddTimes(total, g.parts[reason])
	}
	return total
}

// startup finds the gaps in which a process starts. What is cold by its reason is counted
// gap by gap. Beside that, the few gaps that are nearly all of idle time, before the device
// has done anything to speak of, are the start if cold reasons are much of them: what the
// host does between two libraries that it loads is part of that.
type startup struct {
	longest []gapSum // the longest first
	gaps    int64
	worked  int64 // ns so far in which kernels ran: copies before them bring data that they need
}

// What nearly all, few, early, and enough are.
const (
	mostGaps    = 64 // that are kept
	nearlyAll   = 0.9
	fewGapsPart = 0.01 // of all gaps, or fewGaps
	fewGaps     = 3
	earlyPart   = 0.1 // of the time for which kernels run
	enoughCold  = 0.3 // of the time of these gaps
)

// add takes a gap.
func (s *startup) add(g *gapSum) {
	s.gaps++
	if n := len(s.longest); n == mostGaps && s.longest[n-1].Length() >= g.Length() {
		return
	}
	g.before = s.worked
	at, _ := slices.BinarySearchFunc(s.longest, g.Length()-1, func(l gapSum, length int64) int { return cmp.Compare(length, l.Length()) })
	s.longest = slices.Insert(s.longest, at, *g)
	s.longest = s.longest[:min(len(s.longest), mostGaps)]
}

// settle counts the rest of the gaps of the start.
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
	for i := range g.BySteps {
		g.BySteps[i].Cold.leaveOutSpread()
	}
	sum, cold, n := int64(0), int64(0), 0
	for n < len(s.longest) && float64(sum) < nearlyAll*float64(idle) {
		gap := &s.longest[n]
		if float64(gap.before) > earlyPart*float64(s.worked) {
			return
		}
		sum, cold = distribution.AddTimes(sum, gap.Length()), distribution.AddTimes(cold, gap.coldTime())
		n++
	}
	few := max(fewGaps, int64(fewGapsPart*float64(s.gaps)))
	if int64(n) > few || float64(sum) < nearlyAll*float64(idle) || float64(cold) < enoughCold*float64(sum) {
		return
	}
	for i := range s.longest[:n] {
		gap := &s.longest[i]
		of := &g.BySteps[gap.step].Cold
		if gap.coldTime() == gap.parts[Allocation] { // else it is counted already
			of.addGap(gap)
		}
		for reason, t := range gap.parts {
			if !Reason(reason).Cold() {
				of.Time[reason] = distribution.AddTimes(of.Time[reason], t)
			}
		}
	}
}

// leaveOutSpread makes loads of code that come again and again what they are: idle time of a
// process that works.
func (c *Cold) leaveOutSpread() {
	if c.Spread && c.Gaps > fewGaps {
		c.Time[Modules] = 0
	}
	if c.Total() == 0 {
		*c = Cold{}
	}
}

// mostlyCold reports whether the gap is cold by its reasons.
func (g *gapSum) mostlyCold() bool {
	return 2*(g.coldTime()-g.parts[Allocation]) >= g.Length()
}

// addCold counts what is cold of a gap by its reasons.
func (c *Cold) addCold(g *gapSum) {
	for reason := Capturing; reason <= Modules; reason++ {
		c.Time[reason] = distribution.AddTimes(c.Time[reason], g.parts[reason])
	}
	if g.load > 0 {
		c.loads.join(&codeLoad{1, g.load, g.load})
	}
	if g.coldTime() > g.parts[Allocation] {
		c.addGap(g)
	}
}

func (c *Cold) addGap(g *gapSum) {
	c.Gaps++
	c.Last = max(c.Last, g.To)
	if g.Length() > c.longest.Length() {
		c.longest = g.Gap
	}
}

// A captureMark is the call that begins or ends the recording of a CUDA graph. What is
// launched between the two does not run.
type captureMark struct {
	at    trace.Time
	begin bool
}

// captureMarkOf returns what a call of a name is to the recording of graphs.
func captureMarkOf(name string) (begin, mark bool) {
	begin = strings.HasSuffix(name, "StreamBeginCapture") || strings.HasSuffix(name, "StreamBeginCaptureToGraph")
	return begin, begin || strings.HasSuffix(name, "StreamEndCapture")
}

// captures returns the times in which graphs were recorded, as calls that hold up the host.
// What began before the recording, or ends after it, is cut there.
func (r *rankWork) captures() (calls []HostCall) {
	slices.SortFunc(r.marks, func(a, b captureMark) int { return cmp.Compare(a.at, b.at) })
	if len(r.recorded) == 0 {
		return nil
	}
	open, from := 0, r.recorded[0].from
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
		add(r.recorded[len(r.recorded)-1].to)
	}
	return calls
}

// compiles reports whether a range of a name is one in which code is compiled: of PyTorch's
// "backend_compile (dynamo_timed)", or of anybody who says so. "Torch-Compiled Region" runs
// what was compiled.
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
