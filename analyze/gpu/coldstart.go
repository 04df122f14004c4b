package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
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
