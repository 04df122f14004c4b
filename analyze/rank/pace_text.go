package rank

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Text says in a sentence which server is slow, at what, and by how much.
func (s *SlowServer) Text() string {
	what := "per decode step"
	if s.Kind == PrefillStep {
		what = fmt.Sprintf("for a prompt of %d tokens", s.Prompt)
	}
	others := fmt.Sprintf("the other %d ranks", s.Peer)
	if s.Peer == 1 {
		others = "the other rank"
	}
	text := fmt.Sprintf("%s takes %s %s, %s %s (+%s %%), with no more load", s.Where.String(),
		words.Nearly(s.Own), what, others, words.Nearly(s.Others), words.InPercent(distribution.Ratio(float64(s.Own-s.Others), float64(s.Others))))
	if s.Since != 0 {
		text += ", since " + words.When(s.Since, s.Earliest, s.Latest)
	}
	return text
}

// evidence are further sentences.
func (s *SlowServer) evidence() []string {
	load := fmt.Sprintf("it has %s %% of the requests of %d ranks", words.InPercent(s.Share), s.Peer+1)
	if !math.IsNaN(s.TokenShare) {
		load += fmt.Sprintf(" and %s %% of the tokens", words.InPercent(s.TokenShare))
	}
	return []string{s.warning(), load}
}

// doubt is the sentence about how certain it is.
func (s *SlowServer) warning() string {
	j := &s.judged
	text := fmt.Sprintf("it takes %s %% longer than the others at the same time, on average", words.InPercent(j.Delay))
	if math.IsNaN(j.P) {
		return fmt.Sprintf("%s, and clearly so in %d of %d pieces of the time", text, j.LateBlocks, j.Blocks)
	}
	return fmt.Sprintf("%s (95 %% confidence: %s to %s %%); if all were alike, one would look so with %s",
		text, words.InPercent(j.DelayLow), words.InPercent(j.DelayHigh), words.Chance(j.P))
}

// slowFindings returns the servers that are slow, each once. Where a rank keeps the
// others of its server waiting, that is why, and told already.
func (r *Ranks) slowFindings() []finding.Finding {
	slow := slices.Clone(r.Slow)
	slices.SortStableFunc(slow, func(x, y SlowServer) int { return cmp.Compare(y.Cost, x.Cost) })
	var out []finding.Finding
	var servers []place.Where
	for i := range slow {
		s := &slow[i]
		if s.Cost < leastCost || r.explained(&s.Where) {
			continue
		}
		on := place.Where{Scope: place.OneRank, Role: s.Role, Host: s.Host, Server: s.Server}
		if k := slices.Index(servers, on); k >= 0 {
			out[k].Evidence = append(out[k].Evidence, s.Text())
			continue
		}
		servers = append(servers, on)
		out = append(out, finding.Finding{
			Kind: finding.Slower, At: s.Where, Since: s.Since, Text: s.Text(), Evidence: s.evidence(),
			Show: []string{"--by-rank"}, Weight: min(1, s.Cost),
		})
	}
	return out
}

// explained reports whether a rank of the same server keeps others waiting.
func (r *Ranks) explained(at *place.Where) bool {
	same := func(o *place.Where) bool { return o.Role == at.Role && o.Host == at.Host && o.Server == at.Server }
	for _, g := range r.Groups {
		for i := range g.Stragglers {
			if same(&g.Stragglers[i].Where) {
				return true
			}
		}
	}
	for _, p := range r.Pipes {
		if len(p.Slow) > 0 && same(&p.Stages[0].Where) {
			return true
		}
	}
	return false
}
