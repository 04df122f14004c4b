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

// isPlayed reports whether it takes the chain of collectives to say what a rank costs that others wait for.
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

// costAsPlayed says what findings cost of ranks that compute longer, or whose hosts are late: what the run would take less if they were as
// fast as their peers. If others then wait for their hosts, or for another rank, they wait all the same.
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

// canPlay reports whether all of the communication is waited for, and known.
func (m *Measured) canPlay() bool {
	if m.Chain == nil || m.Chain.Refused != "" || m.GPUs == nil || m.GPUs.Divided() || m.Of.Devices.From != 0 || m.Of.Devices.To != 0 {
		return false
	}
	all := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Time(kernelname.ClassCommunication) })
	exposed := m.GPUs.Total(func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) })
	return float64(all-exposed) <= maxBesideCompute*float64(all)
}

// playWithout says what a finding costs by what ranks would take if one were as fast as its peers: no more than it does, unless its host is
// late, as then what its device idles comes on top of what the others wait.
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

// maxBesideCompute is which part of communication may be hidden by computing: beyond, ranks do not wait for all of their collectives.
const maxBesideCompute = 0.1
