package rank

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Stragglers returns the ranks that others wait for at the end or the beginning of steps, the costliest first.
func (r *Ranks) Stragglers() []straggler.Straggler {
	return order.EachRow(r.lateRanks(), func(s *lateRank) straggler.Straggler { return s.Straggler })
}

func (r *Ranks) lateRanks() (all []lateRank) {
	for _, g := range slices.Concat(r.Groups, r.starts) {
		for i, s := range g.Stragglers {
			late := lateRank{Straggler: s, kind: g.Kind}
			if i < len(g.held) {
				late.held = g.held[i]
			}
			all = append(all, late)
		}
	}
	slices.SortStableFunc(all, func(x, y lateRank) int { return cmp.Compare(y.Lost, x.Lost) })
	return all
}

// Verdict says in a sentence which rank keeps others waiting at the end of steps, or that none does and what was
// compared.
func (r *Ranks) Verdict() string {
	if all := r.Stragglers(); len(all) > 0 {
		return "Straggler: " + all[0].Text()
	}
	var steps [len(rankSteps)]int
	most := 0
	var costs *StepGroup // costs.Late[rank] is the costliest rank
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
		return "No straggler found: each DP rank has one scheduler, as with DP attention, and requests do not show when these wait for each other"
	case costs == nil:
		return "No straggler found: there are no TP ranks on one host to compare"
	case most < straggler.FewestSyncPoints:
		return fmt.Sprintf("Not enough data to find stragglers: %s, %d needed", strings.Join(looked, " and "), straggler.FewestSyncPoints)
	}
	for _, g := range r.Groups {
		if len(g.likely) > 0 {
			return words.Capitalized(g.likely[0].LikelyText())
		}
	}
	return fmt.Sprintf("No straggler in %s: %s", strings.Join(looked, " and "), costs.acquit(rank))
}

// acquit says in a sentence why a rank is not a straggler.
func (g *StepGroup) acquit(rank int) string {
	l := &g.Late[rank]
	why := "but this may be chance"
	if !g.enough[rank] {
		why = fmt.Sprintf("but by too little to matter (%s on average)", words.Nearly(max(0, l.Mean)))
	}
	return fmt.Sprintf("%s ends last in %d of %d %s, %s", g.Ranks[rank].String(), l.Last, l.SyncPoints, rankSteps[g.Kind].one+"s", why)
}

// StragglerFindings returns the ranks that others wait for in steps, and whether there are enough steps to say so. A
// healthy deployment has none.
func (r *Ranks) StragglerFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	var out []finding.Finding
	for _, s := range r.stragglerRanks() {
		f := s.Finding(s.LostShare * s.Part)
		if f.At.Scope == place.OneRank {
			f.Claim, f.Affected = s.claim(b, f.Affected)
		}
		out = append(out, f)
	}
	check := finding.Check{What: "lateness in steps of TP ranks", Of: "step", Needed: straggler.FewestSyncPoints}
	all := 0
	for _, g := range r.Groups {
		check.N = max(check.N, g.Steps)
		all += g.Steps
	}
	switch {
	case all == 0 && r.dataParallelAttention():
		check.Reason = "each DP rank has one scheduler"
	case all == 0:
		check.Reason = "there are no TP ranks on one host with traced steps to compare"
	case check.N >= check.Needed:
		check.N = all
	}
	return b.Price(out), check
}

// Imbalances returns the ranks that get more than their share of the requests, or none, and whether there are enough
// requests to say so.
func (r *Ranks) Imbalances(b *cause.Costs) ([]finding.Finding, finding.Check) {
	var out []finding.Finding
	check := finding.Check{What: "load per rank", Of: "request", Needed: routesInBlock * minBlocks}
	balances := r.balances()
	for i := range balances {
		d := &balances[i]
		check.N = max(check.N, len(d.routes()))
		if d.Uneven {
			out = append(out, d.finding(b))
		}
	}
	out = append(out, r.idleRanks()...)
	if len(balances) == 0 {
		check.Reason = "no role has several ranks that a request could go to"
	}
	return b.Price(out), check
}

// SlowStages returns the stages that hold up their pipelines, and whether there are enough micro-batches to say so.
func (r *Ranks) SlowStages() ([]finding.Finding, finding.Check) {
	var out []finding.Finding
	check := finding.Check{What: "pipeline stages", Of: "micro-batch", Needed: straggler.FewestSyncPoints}
	for _, p := range r.Pipes {
		check.N = max(check.N, p.Batches)
		for i := range p.Slow {
			out = append(out, p.finding(&p.Slow[i]))
		}
	}
	if len(r.Pipes) == 0 {
		check.Reason = "no pipeline stages were traced"
	}
	return out, check
}

// A lateRank is a straggler and the kind of step in which it is late.
type lateRank struct {
	straggler.Straggler
	kind StepKind
	held map[int]int64 // as in StepGroup
}

// claim charges the time that requests wait for the straggler, and returns which requests do. Queues behind its steps
// grow by the same fraction.
func (s *lateRank) claim(b *cause.Costs, known finding.Affected) (finding.Claim, finding.Affected) {
	span := cause.Span{From: s.Since, Until: s.Until, At: s.Location}
	switch s.kind {
	case prefillStart:
		return b.Slowed(span, s.LostShare, append([]cause.Cause{cause.Prefill}, cause.QueueCauses...)...).And(b.Amounts(s.held, cause.Decode)), known
	case decodeStart:
		return b.Slowed(span, s.LostShare, append([]cause.Cause{cause.Decode}, cause.QueueCauses...)...), known
	}
	claim, waiting := b.WaitsFor(&s.Location)
	if waiting.N > 0 {
		known = waiting
	}
	return claim.And(b.Slowed(span, s.LostShare*s.Part, cause.QueueCauses...)), known
}

// stragglerRanks returns each straggler once, with the other kinds of steps that it is late in as evidence.
func (r *Ranks) stragglerRanks() (all []lateRank) {
	index := map[place.Location]int{}
	for _, s := range r.lateRanks() {
		if i, ok := index[s.Location]; ok {
			all[i].Evidence = append(slices.Clip(all[i].Evidence), finding.Evidence{Text: s.Text()})
			continue
		}
		index[s.Location] = len(all)
		all = append(all, s)
	}
	return all
}

// finding returns the finding of a slow stage.
func (p *Pipeline) finding(s *straggler.Straggler) finding.Finding {
	slow := &p.Stages[s.Rank]
	return finding.Finding{
		At: slow.Location, Since: s.Since, Text: p.text(s), Evidence: p.evidence(s), Cost: p.cost(s), P: finding.Chance(s.P),
		Metric: finding.Metric{Name: "time per micro-batch", Unit: table.Duration, Before: float64(p.others(s.Rank).took), After: float64(slow.Took.P50)},
	}
}

// text says in a sentence which stage is slow.
func (p *Pipeline) text(s *straggler.Straggler) string {
	slow := &p.Stages[s.Rank]
	others := p.others(s.Rank)
	return fmt.Sprintf("%s is the slow stage of its pipeline: it takes %s per micro-batch, the others take %s (p50); it is idle %s %% of the time, the others %s %%",
		p.stageName(s.Rank), words.Nearly(slow.Took.P50), words.Nearly(others.took), words.InPercent(slow.Bubble), words.InPercent(others.bubble))
}

func (p *Pipeline) evidence(s *straggler.Straggler) []finding.Evidence {
	slow := &p.Stages[s.Rank]
	list := []finding.Evidence{
		finding.Sentence("it was the slowest stage for %d of the %d micro-batches whose times on other stages are known; it takes longer by %s", s.Last, s.SyncPoints, s.Sure()).
			In("ranks.pipeline", rowOf(&slow.Location), "took_p50_ns", float64(slow.Took.P50)),
	}
	if s.Since != 0 {
		list = append(list, finding.Sentence("since %s", words.When(s.Since, s.Earliest, s.Latest)))
	}
	return list
}

// rowOf returns the key of a rank's row in the tables of this package.
func rowOf(at *place.Location) []finding.Key {
	return finding.Row("role", at.Role.String(), "host", at.ServerName(), "rank", at.RankName())
}

// cost returns the fraction of its time that the pipeline would save if the stage were as fast as the others.
func (p *Pipeline) cost(s *straggler.Straggler) float64 {
	slow := float64(p.Stages[s.Rank].Took.P50)
	return max(0, 1-distribution.Ratio(float64(p.others(s.Rank).took), slow)) * s.Part
}

// stageName names a stage in a sentence: "unified DP0 PP1".
func (p *Pipeline) stageName(stage int) string {
	s := p.Stages[stage].Location
	s.Rank.TP, s.Rank.EP = -1, -1
	return s.Group()
}

// otherStages holds medians over the other stages of a pipeline.
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
