package rank

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// text says in a sentence which server is slow, in which steps, and by how much.
func (s *SlowServer) text() string {
	what := "per decode step"
	switch {
	case s.Kind == PrefillStep:
		what = fmt.Sprintf("for a prefill of %s tokens", words.Thousands(s.Size))
	case s.Size > 0:
		what += " of " + words.Counted(int(s.Size), "request")
	}
	others := fmt.Sprintf("the other %d ranks%s take", s.Peer, s.Like)
	if s.Peer == 1 {
		others = fmt.Sprintf("the other rank%s takes", s.Like)
	}
	text := fmt.Sprintf("%s takes %s %s, %s %s (+%s %%), and it has no more load than they do", s.Location.String(),
		words.Nearly(s.Own), what, others, words.Nearly(s.Others), words.InPercent(distribution.Ratio(float64(s.Own-s.Others), float64(s.Others))))
	if s.Least > 0 {
		text += fmt.Sprintf("; most of those of fewer than %s tokens take as long as there", words.Thousands(s.Least))
	}
	if s.Since != 0 {
		text += ", since " + words.When(s.Since, s.Earliest, s.Latest)
	}
	if s.judged.Until != 0 {
		text += ", until " + s.judged.UntilText()
	}
	if s.OwnCost > 0 {
		text += fmt.Sprintf("; the requests on it spend %s %% of their time on that", words.InPercent(s.OwnCost))
		if s.Kind == PrefillStep {
			text += " alone, beside waits for it"
		}
	}
	return text
}

// evidence says how certain it is, and that load is not the reason.
func (s *SlowServer) evidence() []finding.Evidence {
	load := fmt.Sprintf("it has %s %% of the requests of %d ranks%s", words.InPercent(s.Share), s.Peer+1, s.Like)
	if !math.IsNaN(s.TokenShare) {
		load += fmt.Sprintf(" and %s %% of the tokens", words.InPercent(s.TokenShare))
	}
	return []finding.Evidence{finding.Sentence("%s", s.sure()), {Text: load, Table: "ranks.share", Row: rowOf(&s.Location), Column: "share", Value: s.Share}}
}

// sure returns the sentence about how certain it is.
func (s *SlowServer) sure() string {
	j := &s.judged
	text := fmt.Sprintf("it takes %s %% longer than the other ranks at the same time, on average", words.InPercent(j.Delay))
	switch {
	case math.IsNaN(j.P):
		return fmt.Sprintf("%s, and clearly longer in %d of %d blocks of time", text, j.LateBlocks, j.Blocks)
	case j.DelayLow <= 0: // too few blocks of time for an interval
		return fmt.Sprintf("%s; %s if all ranks were equally fast", text, words.Chance(j.P))
	}
	return fmt.Sprintf("%s (95 %% confidence interval: %s to %s %%); %s if all ranks were equally fast",
		text, words.InPercent(j.DelayLow), words.InPercent(j.DelayHigh), words.Chance(j.P))
}

// slowServers returns the servers that are slow enough to matter, the costliest first. It leaves out servers with a
// straggler, which explains it and is reported already.
func (r *Ranks) slowServers() (list []*SlowServer) {
	for i := range r.Slow {
		if s := &r.Slow[i]; max(s.Cost, s.OwnCost) >= minCost && !r.explained(&s.Location) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(x, y *SlowServer) int { return cmp.Compare(y.Cost, x.Cost) })
	return list
}

// SlowServers returns each slow server once, and whether there are enough steps to say so.
func (r *Ranks) SlowServers(b *cause.Costs) ([]finding.Finding, finding.Check) {
	var out []finding.Finding
	var servers []place.Location
	var of []*SlowServer // first entry of each server
	for _, s := range r.slowServers() {
		on := place.Location{Scope: place.OneRank, Role: s.Location.Role, Host: s.Location.Host, Server: s.Location.Server}
		if k := slices.Index(servers, on); k >= 0 {
			out[k].Evidence = append(out[k].Evidence, finding.Evidence{Text: s.text()})
			out[k].Claim = out[k].Claim.And(s.claim(b))
			if o := of[k]; o.Location == s.Location && o.Kind != s.Kind {
				out[k].Claim = out[k].Claim.And(b.Slowed(s.span(), min(o.slower(), s.slower()), cause.QueueCauses...))
			}
			continue
		}
		servers, of = append(servers, on), append(of, s)
		out = append(out, finding.Finding{
			At: s.Location, Since: s.Since, Until: s.judged.Until, Within: max(s.Since-s.Earliest, s.Latest-s.Since), Text: s.text(), Evidence: s.evidence(), Claim: s.claim(b), P: finding.Chance(s.judged.P),
			Metric: finding.Metric{Name: s.Kind.Pace(), Unit: table.Duration, Before: float64(s.Others), After: float64(s.Own)},
		})
	}
	check := finding.Check{What: "step times of servers", Of: "step", N: r.paced, Needed: minPaced}
	if r.paced < 0 {
		check.Reason = "no role has several ranks with traced steps to compare"
	}
	return b.Price(out), check
}

// claim charges the extra time of the server's own work, and the time of what waits only for that. Decode servers and
// prefill servers do nothing else, so their queues wait for it. A unified server prefills first, so its decoding
// waits for its prefills.
func (s *SlowServer) claim(b *cause.Costs) finding.Claim {
	of := []cause.Cause{cause.Decode}
	if s.Kind == PrefillStep {
		of = []cause.Cause{cause.Prefill}
	}
	switch {
	case s.Least > 0:
		return b.Amounts(s.own, cause.Prefill).And(b.Amounts(s.held, cause.Decode, cause.Interference))
	case s.Location.Role != request.Unified:
		of = append(of, cause.QueueCauses...)
	case s.Kind == PrefillStep:
		of = append(of, cause.DecodeQueue, cause.Interference)
		return b.Slowed(s.span(), s.slower(), of...).And(b.Amounts(s.held, cause.Decode))
	}
	return b.Slowed(s.span(), s.slower(), of...)
}

// span returns when and where the server is slow.
func (s *SlowServer) span() cause.Span {
	return cause.Span{From: s.Since, Until: s.judged.Until, At: s.Location}
}

// slower returns the fraction of a step's time that another server would save.
func (s *SlowServer) slower() float64 {
	return 1 - distribution.Ratio(float64(s.Others), float64(s.Own))
}

// explained reports whether a rank of the same server keeps others waiting.
func (r *Ranks) explained(at *place.Location) bool {
	same := func(o *place.Location) bool { return o.Role == at.Role && o.Host == at.Host && o.Server == at.Server }
	for _, g := range slices.Concat(r.Groups, r.starts) {
		for i := range g.Stragglers {
			if same(&g.Stragglers[i].Location) {
				return true
			}
		}
	}
	return slices.ContainsFunc(r.Pipes, func(p *Pipeline) bool { return len(p.Slow) > 0 && same(&p.Stages[0].Location) })
}
