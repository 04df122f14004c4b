package finders

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Ranks that send and receive are stages of a pipeline. A stage sends what it has computed, and a step ends with the
// last stage: stages wait for each other, and all of them for the one that computes longest. None of them is late.
const (
	// mostlyPassed is the part of communication time that must be in sends and receives for it to be that of a pipeline, and
	// of their time that must be waiting for it to be bubbles.
	mostlyPassed = 0.8
	// longerStage is the factor by which a stage must compute longer than any other to be the one that the others wait for.
	longerStage = 1.2
)

// stages returns which part of its time each rank that sends or receives computes, the largest
// part first; nil unless communication is mostly that.
func (m *Measured) stages() (list []stage) {
	passed, all := int64(0), int64(0)
	ranks := map[string]bool{}
	for i := range m.Collectives.Parts {
		p := &m.Collectives.Parts[i]
		all = distribution.AddTimes(all, p.Took.Total)
		if p.Passes() {
			passed, ranks[p.Rank] = distribution.AddTimes(passed, p.Took.Total), true
		}
	}
	if len(ranks) < 2 || float64(passed) < mostlyPassed*float64(all) {
		return nil
	}
	for i := range m.GPUs.GPUs {
		if g := &m.GPUs.GPUs[i]; ranks[g.Rank] {
			list = append(list, stage{g.Rank, distribution.Fraction(g.Time(kernelname.ClassCompute), g.Length())})
		}
	}
	slices.SortStableFunc(list, func(a, b stage) int { return cmp.Compare(b.computes, a.computes) })
	return list
}

// A stage is a rank, with the part of its time in which it computes.
type stage struct {
	rank     string
	computes float64
}

// tellPipeline adds to exposed communication that it is between stages of a pipeline, and
// whether one of them computes longer than the others.
func (m *Measured) tellPipeline(f *finding.Finding) {
	list := m.stages()
	if len(list) < 2 || len(list) != len(m.GPUs.GPUs) {
		return
	}
	f.Subkind = gpuloss.PipelineSubkind
	f.Text += ", in send and recv between stages of a pipeline"
	most, next, least := &list[0], &list[1], &list[len(list)-1]
	if most.computes >= longerStage*next.computes {
		f.Confidence, f.At = finding.Likely, place.Named(most.rank)
		f.Text += fmt.Sprintf("; %s computes %.0f %% of the time, and %s, as they wait for it", most.rank, 100*most.computes, between(list[1:]))
		return
	}
	f.Text += fmt.Sprintf(", which all compute about as long, %.0f %% to %.0f %% of the time", 100*least.computes, 100*most.computes)
	if m.Collectives.PassesLate() >= mostlyPassed {
		f.Confidence = finding.Likely
		f.Text += fmt.Sprintf(", as if too few micro-batches were in flight to keep %d stages busy", len(list))
	}
}

// between returns in words which part of their time other stages compute.
func between(list []stage) string {
	most, least := 100*list[0].computes, 100*list[len(list)-1].computes
	switch {
	case len(list) == 1:
		return fmt.Sprintf("the other one %.0f %%", most)
	case math.Round(least) == math.Round(most):
		return fmt.Sprintf("the others %.0f %%", most)
	}
	return fmt.Sprintf("the others %.0f %% to %.0f %%", least, most)
}
