package rank

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Stragglers returns the ranks that others wait for at the end of steps; what costs
// most comes first.
func (r *Ranks) Stragglers() []straggler.Straggler {
	var all []straggler.Straggler
	for _, g := range r.Groups {
		all = append(all, g.Stragglers...)
	}
	straggler.Sort(all)
	return all
}

// Verdict says in a sentence which rank keeps others waiting at the end of steps,
// or that none does and what was looked at.
func (r *Ranks) Verdict() string {
	if all := r.Stragglers(); len(all) > 0 {
		return "Straggler: " + all[0].Text()
	}
	var steps [len(rankSteps)]int
	most := 0
	var costs *StepGroup // of the rank that costs most, which is its rank-th
	rank := 0
	for _, g := range r.Groups {
		steps[g.Kind] += g.Steps
		most = max(most, g.Steps)
		for i := range g.Late {
			if costs == nil || g.Late[i].LostShare > costs.Late[rank].LostShare {
				costs, rank = g, i
			}
		}
	}
	var looked []string
	for kind, n := range steps {
		if n > 0 {
			looked = append(looked, words.Counted(n, rankSteps[kind].one))
		}
	}
	switch {
	case costs == nil && r.dataParallelAttention():
		return "No straggler found: each DP rank has one scheduler, as with DP attention, and requests do not show when those wait for each other"
	case costs == nil:
		return "No straggler found: there are no TP ranks on one host to compare"
	case most < straggler.FewestSyncPoints:
		return fmt.Sprintf("No straggler found: %s, too few to tell", strings.Join(looked, " and "))
	}
	return fmt.Sprintf("No straggler in %s: %s", strings.Join(looked, " and "), costs.acquit(rank))
}

// acquit says in a sentence why a rank is no straggler.
func (g *StepGroup) acquit(rank int) string {
	l := &g.Late[rank]
	why := "but that may be chance"
	if !g.enough[rank] {
		why = fmt.Sprintf("but by too little to matter (%s on average)", words.Nearly(max(0, l.Mean)))
	}
	return fmt.Sprintf("%s ends last in %d of %d %s, %s", g.Ranks[rank].String(), l.Last, l.SyncPoints, rankSteps[g.Kind].one+"s", why)
}

// Findings returns what stands out: ranks that others wait for, load that is divided
// unevenly, servers that are slow, and pipelines with a slow stage. A healthy
// deployment has none.
func (r *Ranks) Findings() []finding.Finding {
	var out []finding.Finding
	show := []string{"--by-rank"}
	for _, s := range r.stragglerRanks() {
		out = append(out, finding.Finding{
			Kind: finding.Straggler, At: s.Where, Since: s.Since, Text: s.Text(), Evidence: s.Evidence,
			Show: show, Weight: s.LostShare * s.Part,
		})
	}
	for _, d := range r.divisions() {
		if d.Uneven {
			out = append(out, finding.Finding{
				Kind: finding.Imbalance, At: d.Most.Where, Text: d.Text(), Evidence: d.evidence(),
				Show: show, Weight: min(1, d.Cost),
			})
		}
	}
	out = append(out, r.slowFindings()...)
	for _, p := range r.Pipes {
		for i := range p.Slow {
			out = append(out, finding.Finding{
				Kind: finding.Pipeline, At: place.Where{Scope: place.WholeRole, Role: p.Stages[0].Role},
				Text: p.text(&p.Slow[i]), Evidence: p.evidence(&p.Slow[i]), Show: show, Weight: p.weight(&p.Slow[i]),
			})
		}
	}
	return out
}

// stragglerRanks returns the stragglers, each rank once: what else it is late at is
// evidence.
func (r *Ranks) stragglerRanks() []straggler.Straggler {
	var all []straggler.Straggler
	index := map[place.Where]int{}
	for _, s := range r.Stragglers() {
		if i, ok := index[s.Where]; ok {
			all[i].Evidence = append(all[i].Evidence[:len(all[i].Evidence):len(all[i].Evidence)], s.Text())
			continue
		}
		index[s.Where] = len(all)
		all = append(all, s)
	}
	return all
}

// text says in a sentence which stage is slow.
func (p *Pipeline) text(s *straggler.Straggler) string {
	slow := &p.Stages[s.Rank]
	others := p.others(s.Rank)
	return fmt.Sprintf("%s is the slow stage of its pipeline: %s per micro-batch, the other %s (p50); it is idle %s %% of the time, the other %s %%",
		p.stageName(s.Rank), words.Nearly(slow.Took.P50), words.Nearly(others.took), words.InPercent(slow.Bubble), words.InPercent(others.bubble))
}

func (p *Pipeline) evidence(s *straggler.Straggler) []string {
	list := []string{
		fmt.Sprintf("of %d micro-batches of which the times of other stages are known it took longest for %d: it takes %s",
			s.SyncPoints, s.Last, s.Sure("longer")),
	}
	if s.Since != 0 {
		list = append(list, "since "+words.When(s.Since, s.Earliest, s.Latest))
	}
	return list
}

// weight is the part of the time that the pipeline would save if the stage were as
// fast as the others.
func (p *Pipeline) weight(s *straggler.Straggler) float64 {
	slow := float64(p.Stages[s.Rank].Took.P50)
	return max(0, 1-distribution.Ratio(float64(p.others(s.Rank).took), slow)) * s.Part
}

// stageName names a stage in a sentence: "unified DP0 PP1".
func (p *Pipeline) stageName(stage int) string {
	s := p.Stages[stage].Where
	s.Rank.TP, s.Rank.EP = -1, -1
	return s.Group()
}

// otherStages is what is usual of the other stages of a pipeline: medians.
type otherStages struct {
	took   int64
	bubble float64
}

func (p *Pipeline) others(stage int) otherStages {
	var took []int64
	var bubbles []float64
	for s := range p.Stages {
		if s != stage && p.Stages[s].Took.N > 0 {
			took = append(took, p.Stages[s].Took.P50)
			bubbles = append(bubbles, p.Stages[s].Bubble)
		}
	}
	return otherStages{distribution.LowerMedian(took), distribution.LowerMedian(bubbles)}
}
