package finders

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// isPlayed reports whether it takes the chain of collectives to say what a straggler costs.
func (m *Measured) isPlayed() bool {
	return m.Of.Played || m.Of.Devices.From == 0 && m.Of.Devices.To == 0 && len(m.Collectives.Stragglers(nil)) > 0
}

// costAsPlayed lowers what findings cost that a rank computes for longer to what the run would take less if it were as fast as its peers:
// if others then wait for their hosts, or for another rank, they wait all the same.
func (m *Measured) costAsPlayed(found []finding.Finding) {
	if len(found) == 0 || m.Chain == nil || m.Chain.Refused != "" || m.GPUs == nil || m.GPUs.Divided() || m.Of.Devices.From != 0 || m.Of.Devices.To != 0 {
		return
	}
	all := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Time(kernelname.ClassCommunication) })
	exposed := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) })
	if float64(all-exposed) > maxBesideCompute*float64(all) {
		return
	}
	for _, s := range m.Collectives.Stragglers(m.GPUs) {
		i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Rank == s.Name })
		rank := m.Chain.Rank(s.Name)
		if i < 0 || rank < 0 || !computesLonger(&s) {
			continue
		}
		f := &found[i]
		recorded, played, _ := m.Chain.Play(&collective.Change{Rank: rank, Since: s.Since, Until: s.Until})
		if saved := distribution.Fraction(max(0, recorded.Total()-played.Total()), m.GPUs.Length()); saved < f.Cost {
			f.Evidence = append(f.Evidence, finding.Sentence("if %s were as fast as its peers, all ranks would take %.0f %% less time: for the rest of what they lose now, they would wait for their hosts or each other", s.Name, 100*saved))
			f.Cost = saved
		}
	}
}

// maxBesideCompute is which part of communication may be hidden by computing: beyond, ranks do not wait for all of their collectives.
const maxBesideCompute = 0.1

func computesLonger(s *straggler.Straggler) bool {
	return s.Intermittent == nil && collective.IsComputeBound(s.Cause)
}
