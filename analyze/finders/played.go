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

// isPlayed reports whether the chain of collectives is needed, to tell the cost of a rank that others wait for.
func (m *Measured) isPlayed() bool {
	if m.Of.Played || m.Of.Devices.From != 0 || m.Of.Devices.To != 0 {
		return m.Of.Played
	}
	if len(m.Collectives.Stragglers(nil)) > 0 {
		return true
	}
	waited := m.Collectives.Waited()
	return slices.ContainsFunc(waited.Groups, func(g collective.WaitedGroup) bool {
		return slices.ContainsFunc(g.Spells, func(s straggler.Spell) bool { return float64(s.Lost) >= oneExplains*float64(waited.Wait) })
	})
}

// costAsPlayed sets the cost of ranks that are compute-bound or host-bound to what the run would save if they were as
// fast as their peers. Where the others would then wait for their own hosts, or for another rank, nothing is saved.
func (m *Measured) costAsPlayed(found []finding.Finding) {
	if len(found) == 0 || !m.canPlay() {
		return
	}
	for _, s := range m.Collectives.Stragglers(m.GPUs) {
		i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Rank == s.Name })
		if i < 0 || s.Intermittent != nil {
			continue
		}
		if collective.IsHostBound(s.Cause) || collective.IsComputeBound(s.Cause) {
			m.playWithout(&found[i], &collective.Change{Rank: m.Chain.Rank(s.Name), Since: s.Since, Until: s.Until}, collective.IsHostBound(s.Cause))
		}
	}
}

// canPlay reports whether nearly all communication is waited for, and known, so that a replay means something.
func (m *Measured) canPlay() bool {
	if m.Chain == nil || m.Chain.Refused != "" || m.GPUs == nil || m.GPUs.Divided() || m.Of.Devices.From != 0 || m.Of.Devices.To != 0 {
		return false
	}
	all := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Time(kernelname.ClassCommunication) })
	exposed := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) })
	return float64(all-exposed) <= maxBesideCompute*float64(all)
}

// playWithout sets the cost of a finding to what all ranks would save if one were as fast as its peers. It only lowers
// the cost, unless the rank is host-bound: then the idle time of its device comes on top of the others' waiting.
func (m *Measured) playWithout(f *finding.Finding, c *collective.Change, byHost bool) {
	if c.Rank < 0 {
		return
	}
	recorded, played, _ := m.Chain.Play(c)
	saved := distribution.Fraction(max(0, recorded.Total()-played.Total()), m.GPUs.Length())
	if saved >= f.Cost && !byHost {
		return
	}
	name := m.Chain.Name(c.Rank)
	f.Evidence = append(f.Evidence, finding.Sentence("if %s were as fast as its peers, all ranks would take %.0f %% less time: for the rest of what they lose now, they would wait for their hosts or each other", name, 100*saved))
	if f.Cost = saved; byHost {
		m.played[name] = true
	}
}

// maxBesideCompute is the part of communication that may be hidden by compute; beyond it,
// ranks don't wait for all of their collectives.
const maxBesideCompute = 0.1
