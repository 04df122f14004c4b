package gpuloss

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// coldStart returns a finding about the time in which a process starts, if that is much of the capture:
// it says nothing about how the process serves or trains.
func coldStart(g *gpu.GPUs, t *gpuTime) []finding.Finding {
	cold := t.cold.Total()
	share := t.part(cold)
	if share < muchCold || 2*t.cold.Time[gpu.ProfilerStart] >= cold { // only the profilers start
		return nil
	}
	most := largest(&t.cold)[0]
	if most == gpu.Capturing && 2*t.cold.Time[gpu.Capturing] >= t.length {
		text := fmt.Sprintf("this is a CUDA graph being captured: for %.0f %% of the time, the host records launches into the graph, and none of that work runs", 100*t.part(t.cold.Time[gpu.Capturing]))
		f := shareFinding(StartSubkind, "cold start", share, text, coldReasons(g, t), busyApart(g, t))
		f.Severity = finding.Info
		return []finding.Finding{f}
	}
	idle := g.Total((*gpu.GPU).IdleTime)
	where := ""
	if t.cold.AtStart() {
		where = " at the start"
	}
	text := fmt.Sprintf("%s idle %s of the time, %s of it in %s%s, %s; for the rest of the time, %s %s busy", GPUsAre(g), percent(idle, t.length),
		percent(cold, idle), words.Counted(int(t.cold.Gaps), "gap"), where,
		coldClause(g, t, most), GPUsAre(g), percent(t.warm()-(idle-cold), t.warm()))
	started := mostlyStarts(g, t)
	calls := slices.DeleteFunc(slices.Clone(g.Calls), func(c gpu.CallTime) bool { return c.Starts && !started }) // CUDA started before the devices' time
	f := shareFinding(StartSubkind, "cold start", share, text, coldReasons(g, t), loads(t), callEvidence(calls, most), longestCold(t))
	if 2*t.cold.Loads.Total >= cold {
		f.Confidence = finding.Likely // only the length of a launch shows that it loads code
	}
	return []finding.Finding{f}
}

// coldClause says what the host does in the gaps of a start, most of which are for reason r.
func coldClause(g *gpu.GPUs, t *gpuTime, r gpu.Reason) string {
	clause := strings.Replace(reasonClauses[r], "because ", "while ", 1)
	switch {
	case r != gpu.Modules:
	case mostlyStarts(g, t):
		clause = "while CUDA or one of its libraries starts"
	case 4*t.cold.Time[r] < t.cold.Total(): // whatever loads code works between its calls, too
		return "before the first launch of a kernel, for which the host loads code"
	}
	return howMuch(distribution.Fraction(t.cold.Time[r], t.cold.Total())) + clause
}

// mostlyStarts reports whether most of the time in which code is loaded is calls in which CUDA, or one of its libraries,
// starts. Launches that load code do not count, nor do calls before the first work of a device, which delay nothing.
func mostlyStarts(g *gpu.GPUs, t *gpuTime) bool {
	starts := int64(0)
	for i := range g.Calls {
		if g.Calls[i].Starts {
			starts = distribution.AddTimes(starts, g.Calls[i].Time)
		}
	}
	return 2*min(starts, t.cold.Time[gpu.Modules]-t.cold.Loads.Total) >= t.cold.Time[gpu.Modules]
}

// largest returns the cold reasons, the one of most time first, and then the reasons for what the host
// does between them.
func largest(c *gpu.Cold) []gpu.Reason {
	var list []gpu.Reason
	for reason, t := range c.Time {
		if t > 0 {
			list = append(list, gpu.Reason(reason))
		}
	}
	vague := func(r gpu.Reason) int { // reasons that may not be cold come last
		if r.Cold() || r == gpu.Allocation {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b gpu.Reason) int {
		return cmp.Or(cmp.Compare(vague(a), vague(b)), cmp.Compare(c.Time[b], c.Time[a]))
	})
	return list
}

func coldReasons(g *gpu.GPUs, t *gpuTime) finding.Evidence {
	var parts []string
	for _, reason := range largest(&t.cold) {
		if share := t.part(t.cold.Time[reason]); share >= 0.01 {
			what := gpu.ReasonWords[reason]
			if reason == gpu.Modules && mostlyStarts(g, t) {
				what = "starting CUDA, " + what
			}
			parts = append(parts, fmt.Sprintf("%s %.0f %%", what, 100*share))
		}
	}
	return finding.Sentence("cold start by reason: %s of the time", strings.Join(parts, ", "))
}

// loads describes the first launches that load code.
func loads(t *gpuTime) finding.Evidence {
	l := &t.cold.Loads
	if l.N == 0 {
		return finding.Evidence{}
	}
	if l.N == 1 {
		return finding.Sentence("the first launch of 1 kernel takes %s: it loads code", words.Nearly(l.Total))
	}
	return finding.Sentence("the first launches of %s take %s, the longest %s: they load code", words.Counted(int(l.N), "kernel"), words.Nearly(l.Total), words.Nearly(l.Longest))
}

func longestCold(t *gpuTime) finding.Evidence {
	text := "longest of these gaps " + words.Nearly(t.cold.Longest.Length())
	if t.cold.Longest.From > gpu.Absolute {
		text += " at " + words.At(t.cold.Longest.From, words.ClockLayout)
	}
	return finding.Sentence("%s", text)
}

// busyApart says how busy devices are apart from the start.
func busyApart(g *gpu.GPUs, t *gpuTime) finding.Evidence {
	busy := g.Total((*gpu.GPU).Busy)
	return finding.Sentence("for the remaining %s, %s %s busy", words.Nearly(t.warm()), GPUsAre(g), percent(busy, t.warm()))
}

// percent formats a share with enough digits to tell it from all and from nothing.
func percent(part, whole int64) string {
	share := 100 * distribution.Fraction(part, whole)
	if share > 99 && part < whole || share < 1 && part > 0 {
		return fmt.Sprintf("%.1f %%", share)
	}
	return fmt.Sprintf("%.0f %%", share)
}

// eagerLaunch is the longest that a host takes to launch a Python operator, ns. If it takes longer, it
// does something else.
const eagerLaunch = 100_000

// smallKernels says that kernels are too short for a host that launches them one by one. It looks at
// the time in which the host does so, without its pauses.
func smallKernels(g *gpu.GPUs, paused Paused) finding.Evidence {
	n, time, length, pauses := int64(0), int64(0), int64(0), int64(0)
	for i := range g.GPUs {
		device := &g.GPUs[i]
		n += device.Kernels
		// Pauses while the process starts are cold already.
		pause := max(0, paused(device.RankIndex, device.Device)-device.Cold.Time[gpu.HostWork])
		pauses = distribution.AddTimes(pauses, pause)
		time, length = distribution.AddTimes(time, device.KernelTime), distribution.AddTimes(length, launching(device)-pause)
	}
	if n < 2 || time == 0 || 2*time > length || length/n > eagerLaunch {
		return finding.Evidence{}
	}
	apart := ""
	if 10*pauses > length {
		apart = "apart from pauses, "
	}
	return finding.Sentence("%skernels take %s on average, but one is launched only every %s: larger batches or CUDA graphs would help, faster kernels would not", apart, words.Nearly(time/n), words.Nearly(length/n))
}

// launching returns the time in which the host of a device may launch kernel after kernel, in ns: it
// starts nothing, waits for no requests, allocates nothing, and no copy runs alone.
func launching(device *gpu.GPU) int64 {
	ns := device.Length() - device.Cold.Total() - device.Lead - device.Trail - device.Exposed(kernelname.ClassMemory)
	for reason, t := range device.Waits.Time {
		switch gpu.Reason(reason) {
		case gpu.HostWork, gpu.AfterSync, gpu.LaunchGap:
		default:
			ns -= t - device.Cold.Time[reason]
		}
	}
	return ns
}
