package gpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// Devices are a finding if this part of their time, over all ranks, goes into waiting
// for the host while there is work, or into communication that nothing hides. Some of
// either is normal: tensor parallel decoding communicates in every layer.
const (
	muchHostWait = 1.0 / 4
	muchExposed  = 1.0 / 4
	// Where no steps are annotated, nobody knows when there was work: then more than
	// half of the time has to be host wait.
	muchUnknownWait = 1.0 / 2
	// FewRows kernels and copies are a try, and no serving.
	FewRows = 1000
)

// A gpuTime is what some devices did, in ns.
type gpuTime struct {
	length, exposed, hostWait, gaps, rows int64
	// stepless is the time that no step covers, if steps are annotated; else -1.
	stepless int64
}

// HostWaits tells whether devices spend much of their time waiting for the host, and
// whether they did enough to tell.
func (g *GPUs) HostWaits() ([]finding.Finding, finding.Judged) {
	t, judged := g.time("host waits")
	waits := t.waitsAtWork()
	if judged.State() != finding.LookedAt || waits == 0 {
		return nil, judged
	}
	return []finding.Finding{{
		Topic: "host", Cost: waits, Metric: finding.Metric{Name: "host wait", Unit: table.Share, Before: math.NaN(), After: waits},
		Text: fmt.Sprintf("%s %.0f %% of the time waiting for the host to launch work", g.spend(), 100*waits),
		Evidence: []finding.Evidence{finding.Sentence("%d such gaps, %s each on average; on %s, kernels start %s after their launch (median)",
			t.gaps, words.Nearly(t.hostWait/max(1, t.gaps)), g.GPUs[0].Rank, words.Nearly(g.GPUs[0].Delay.P50))},
	}}, judged
}

// Exposure tells whether devices spend much of their time on communication that nothing
// hides, and whether they did enough to tell. waiting says how much of communication is
// waiting for others.
func (g *GPUs) Exposure(waiting []finding.Evidence) ([]finding.Finding, finding.Judged) {
	t, judged := g.time("exposed communication")
	exposed := distribution.Fraction(t.exposed, t.length)
	if judged.State() != finding.LookedAt || exposed < muchExposed {
		return nil, judged
	}
	return []finding.Finding{{
		Topic: "communication", Cost: exposed, Metric: finding.Metric{Name: "exposed communication", Unit: table.Share, Before: math.NaN(), After: exposed},
		Text:     fmt.Sprintf("%s %.0f %% of the time on communication that does not overlap with compute", g.spend(), 100*exposed),
		Evidence: slices.Concat(g.exposedRange(), waiting),
	}}, judged
}

// time adds up what all devices did, and says whether that is enough to judge something.
func (g *GPUs) time(what string) (t gpuTime, judged finding.Judged) {
	for i := range g.GPUs {
		t.add(&g.GPUs[i])
	}
	t.stepless = g.stepless()
	judged = finding.Judged{What: what, Of: "device operation", N: int(t.rows), Needed: FewRows}
	if len(g.GPUs) > 0 {
		judged.What += " of " + g.Devices()
	}
	if t.rows == 0 {
		judged.Reason = "the profiles hold no kernels and copies"
	}
	return t, judged
}

// spend begins a sentence: "the 8 GPUs spend".
func (g *GPUs) spend() string {
	if len(g.GPUs) == 1 {
		return g.Devices() + " spends"
	}
	return g.Devices() + " spend"
}

func (t *gpuTime) add(g *GPU) {
	t.length = distribution.AddTimes(t.length, g.Length())
	t.exposed = distribution.AddTimes(t.exposed, g.Exposed(profile.ClassCommunication))
	t.hostWait = distribution.AddTimes(t.hostWait, g.Idle.Time[HostWait])
	t.gaps += g.Idle.Gaps[HostWait]
	t.rows += g.Rows
}

// waitsAtWork returns the part of the time in which devices wait for the host though
// there is work, 0 if that is not much. Time between steps may be due to a lack of
// requests, so all of it is subtracted.
func (t *gpuTime) waitsAtWork() float64 {
	waits, much := t.hostWait, muchUnknownWait
	if t.stepless >= 0 {
		waits, much = max(0, waits-t.stepless), muchHostWait
	}
	if part := distribution.Fraction(waits, t.length); part >= much {
		return part
	}
	return 0
}

// stepless returns how much of the time of the devices lies between the steps of their
// ranks; -1 if there are no steps. Steps of threads side by side count twice, so that
// it may be less.
func (g *GPUs) stepless() int64 {
	if len(g.Steps) == 0 {
		return -1
	}
	steps := map[int32]int64{}
	for i := range g.Steps {
		s := &g.Steps[i]
		steps[s.rankIndex] = distribution.AddTimes(steps[s.rankIndex], max(s.Host.Total, s.Device.Total))
	}
	between := int64(0)
	for i := range g.GPUs {
		between = distribution.AddTimes(between, max(0, g.GPUs[i].Length()-steps[g.GPUs[i].RankIndex]))
	}
	return between
}

// Devices names the devices: "the GPU of TP0", "the 8 GPUs".
func (g *GPUs) Devices() string {
	if len(g.GPUs) == 1 {
		return "the GPU"
	}
	return fmt.Sprintf("the %d GPUs", len(g.GPUs))
}

// exposedRange tells on which device communication costs least and on which most.
func (g *GPUs) exposedRange() []finding.Evidence {
	if len(g.GPUs) < 2 {
		return nil
	}
	part := func(g *GPU) float64 { return distribution.Fraction(g.Exposed(profile.ClassCommunication), g.Length()) }
	least, most := &g.GPUs[0], &g.GPUs[0]
	for i := range g.GPUs {
		if gpu := &g.GPUs[i]; part(gpu) < part(least) {
			least = gpu
		} else if part(gpu) > part(most) {
			most = gpu
		}
	}
	return []finding.Evidence{finding.Sentence("from %.0f %% on %s to %.0f %% on %s", 100*part(least), g.gpuLabel(least), 100*part(most), g.gpuLabel(most)).
		In("gpu", finding.Row("rank", g.gpuLabel(most)), "exposed_ns", float64(most.Exposed(profile.ClassCommunication)))}
}
