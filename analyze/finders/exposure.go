package finders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// exposure finds exposed communication, all the time or in steps of one kind, and says what it is
// where that is mostly waiting.
func exposure(m *Measured) ([]finding.Finding, finding.Check) {
	return m.GPUs.EachRun(func(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
		if g != m.GPUs {
			return gpuloss.Exposure(g, nil) // how long collectives wait is known of all runs together
		}
		found, check := gpuloss.Exposure(g, append(m.Collectives.Waiting(), m.Collectives.Unseen()...))
		for i := range found {
			if name, ok := strings.CutPrefix(found[i].Metric.Name, gpuloss.ExposedMetric+" in "); ok {
				m.waitsIn(name, &found[i])
			} else if m.absentExplain() {
				found[i].Subkind = absentSubkind
			}
		}
		if m.waits != nil && len(found) > 0 {
			found = m.waits.lead(found, m)
		}
		return found, check
	})
}

// evenly is how many times its even share of the waiting a rank may have for that to be no more than the others'.
const evenly = 1.5

// absentSubkind is that of exposed communication that is mostly waiting for ranks without files.
const absentSubkind = "waits for absent ranks"

// absentExplain reports whether most of exposed communication is waiting for ranks that are not in
// the files.
func (m *Measured) absentExplain() bool {
	exposed := int64(0)
	for i := range m.GPUs.GPUs {
		exposed = distribution.AddTimes(exposed, m.GPUs.GPUs[i].Exposed(kernelname.ClassCommunication))
	}
	return float64(m.Collectives.AbsentWait()) >= mostlyWaiting*float64(exposed)
}

// waitsIn makes a finding about exposed communication in steps of one kind one about waiting, where
// it is mostly that.
func (m *Measured) waitsIn(name string, f *finding.Finding) {
	kind := profile.StepKind(slices.Index(profilewalk.StepKinds[:], name))
	var length, exposed, hidden int64
	for i := range m.GPUs.GPUs {
		did := &m.GPUs.GPUs[i].BySteps[kind]
		e := did.Exposed(kernelname.ClassCommunication)
		length, exposed = distribution.AddTimes(length, did.Total()), distribution.AddTimes(exposed, e)
		hidden = distribution.AddTimes(hidden, did.Time(kernelname.ClassCommunication)-e)
	}
	var wait, blame int64
	var late *collective.StepRank
	ranks := 0
	for i := range m.Collectives.ByStep {
		r := &m.Collectives.ByStep[i]
		if r.Kind != kind {
			continue
		}
		ranks++
		wait, blame = distribution.AddTimes(wait, r.Wait), distribution.AddTimes(blame, r.Blame)
		if late == nil || r.Blame > late.Blame {
			late = r
		}
	}
	waiting := min(exposed, wait-hidden)
	waited := m.Collectives.Waited()
	if late == nil || !waited.Covered.Enough() || float64(waiting) < mostlyWaiting*float64(exposed) {
		return
	}
	part := func(ns int64) float64 { return 100 * distribution.Fraction(ns, length) }
	share := distribution.Fraction(late.Blame, blame)
	f.Text = fmt.Sprintf("in %s, %s %.0f %% of the time in collectives, %.0f %% of that for %s", name, gpuloss.Wait(m.GPUs), part(waiting), 100*share, late.Rank.Rank)
	if share < evenly/float64(ranks) {
		f.Text = fmt.Sprintf("in %s, %s %.0f %% of the time in collectives, for each other: %.0f %% of that for %s, and no more for any other", name, gpuloss.Wait(m.GPUs), part(waiting), 100*share, late.Rank.Rank)
	}
	f.Metric.Name, f.Metric.After = "waiting in collectives in "+name, distribution.Fraction(waiting, length)
	f.Cost = distribution.Fraction(waiting, m.GPUs.Length())
	f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("in %s, communication that does not overlap with compute is %.0f %% of the time: %.0f %% waits for ranks that come late, %.0f %% transfers data%s",
		name, part(exposed), part(waiting), part(exposed-waiting), orAbsent(&waited)))
}
