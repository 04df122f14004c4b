package gpuloss

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// A gpuTime is what some devices did, all the time or in steps of one kind, in ns.
type gpuTime struct {
	length, comm, copies int64
	waits                [gpu.NumReasons]int64 // without cold time
	cold                 gpu.Cold
	longest              [gpu.NumReasons]deviceGap
	withheld             int64 // held back for another process; in no wait
}

// A deviceGap is a gap of a device; of is nil if there is none.
type deviceGap struct {
	gap gpu.Gap
	of  *gpu.GPU
}

// add adds what a device did in length ns.
func (t *gpuTime) add(g *gpu.GPU, did *gpu.Activity, length int64) {
	t.length = distribution.AddTimes(t.length, length)
	t.comm = distribution.AddTimes(t.comm, did.Exposed(kernelname.ClassCommunication))
	t.copies = distribution.AddTimes(t.copies, did.Exposed(kernelname.ClassMemory))
	t.cold.Join(&did.Cold)
	for reason, wait := range did.Waits.Time {
		if gpu.Reason(reason) == gpu.Withheld && withheld(g) {
			t.withheld = distribution.AddTimes(t.withheld, wait)
			continue
		}
		t.waits[reason] = distribution.AddTimes(t.waits[reason], wait-did.Cold.Time[reason])
		if gap := did.Waits.Longest[reason]; gap.Length() > t.longest[reason].gap.Length() {
			t.longest[reason] = deviceGap{gap, g}
		}
	}
}

// exposed returns the time of communication that nothing hides.
func (t *gpuTime) exposed() int64 { return t.comm }

// warm returns the time without cold time, which idle time is a share of.
func (t *gpuTime) warm() int64 { return t.length - t.cold.Total() }

// whole returns all of the time.
func (t *gpuTime) whole() int64 { return t.length }

// idle returns the idle time, without cold time and time between steps.
func (t *gpuTime) idle() int64 {
	total := int64(0)
	for reason, wait := range t.waits {
		if gpu.Reason(reason) != gpu.BetweenSteps {
			total = distribution.AddTimes(total, wait)
		}
	}
	return total
}

// late returns the idle time without the gaps that devices need to start kernels.
func (t *gpuTime) late() int64 { return t.idle() - t.waits[gpu.LaunchGap] }

func (t *gpuTime) part(ns int64) float64 { return distribution.Fraction(ns, t.length) }

// total adds up what all devices did, and checks whether there is enough to judge something.
func total(g *gpu.GPUs, what string) (t gpuTime, check finding.Check) {
	rows := int64(0)
	for i := range g.GPUs {
		device := &g.GPUs[i]
		t.add(device, &device.Activity, device.Length())
		rows += device.Rows
	}
	check = finding.Check{What: what, Of: "device operation", N: int(rows), Needed: 1} // shares are exact
	if rows == 0 {
		check.Reason = "the profiles hold no kernels or copies"
	}
	return t, check
}

// idleTotal is total for findings about idle time, which a recording of communication only does not show.
func idleTotal(g *gpu.GPUs, what string) (gpuTime, finding.Check) {
	t, check := total(g, what)
	if g.OnlyCommunication() {
		check.Reason = "only kernels of communication were recorded"
	}
	check.Covered = g.Coverage()
	return t, check
}
