package gpuloss

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Another process on a device makes many kernels wait, and costs more than what passes: of such
// kernels, so many tell, and they wait for this part of the time of the device.
const (
	manyWithheld = 10
	muchWithheld = 1.0 / 50
)

// withheld reports whether a device holds kernels back for another process. Most of these were
// launched while nothing ran: the others may wait for work before them that was not recorded.
func withheld(g *gpu.GPU) bool {
	h := &g.Held
	return h.N >= manyWithheld && 2*h.Late >= h.N && distribution.Fraction(h.Time, g.Length()) >= muchWithheld
}

// Withheld tells of devices that start kernels late though nothing recorded keeps them from it.
func Withheld(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "kernels that the GPU starts late")
	starts, devices := int64(0), 0
	var worst *gpu.GPU
	for i := range g.GPUs {
		d := &g.GPUs[i]
		starts += d.Held.Starts
		if withheld(d) {
			if devices++; worst == nil || d.Held.Time > worst.Held.Time {
				worst = d
			}
		}
	}
	if check.N = int(starts); starts == 0 && check.Reason == "" {
		check.Reason = "no kernel tells: launches or kernels were not recorded, or there may be something else to wait for"
	}
	if check.State() != finding.LookedAt || worst == nil {
		return nil, check
	}
	h := &worst.Held
	n, of := h.N, h.Starts
	where := ""
	if h.Since != 0 {
		n, of = h.SinceN, h.SinceStarts
		if h.Since > gpu.Absolute {
			where = "since " + words.At(h.Since, words.ClockLayout) + ", "
		}
	}
	switch {
	case devices > 1:
		where += fmt.Sprintf("on %d of %d GPUs, most of all %s, ", devices, len(g.GPUs), g.Label(worst))
	case len(g.GPUs) > 1:
		where += "on " + g.Label(worst) + ", "
	}
	text := fmt.Sprintf("%s%s of %s kernels that find the GPU idle start %s after their launch in the median, while it runs nothing of this process: another process uses the GPU",
		where, words.Thousands(n), words.Thousands(of), words.Nearly(h.Median))
	f := shareFinding("withheld", "kernels held back", t.part(t.withheld), text,
		finding.Sentence("the others of these kernels start %s after their launch in the median", words.Nearly(h.Else)),
		finding.Sentence("processes on one GPU run in turns, by slices of about 2 ms, unless they share it by MPS or MIG; nvidia-smi lists them"))
	f.Since = h.Since
	return []finding.Finding{f}, check
}
