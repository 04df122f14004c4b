package slow

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// starving is the share of the time between tokens from which prompts take most of it: a token takes three times as
// long as without.
const starving = 2.0 / 3

// starved finds a server that spends most of its time on prompts while requests run, because SGLang computes prompts
// before it decodes. The time for prompts follows from the pace of the rank, in stretches that the pace explains.
func starved(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	p, _, ok := measuredOf(r.Stretches)
	if r.Where.Role != request.Unified || !ok || !r.Has(series.NewTokens) { // other engines compute them in the same steps as decoding
		return f, false
	}
	const far, least = 1.5, trace.Time(60e9)
	var best, run struct {
		from, to                trace.Time
		n                       int
		prompts, token, without float64 // sums
	}
	for i := 1; i < len(r.Stretches); i++ {
		x := &r.Stretches[i]
		takes, of := p.Takes(x), telemetry.PaceFactors(x)
		prompts := p[3]*of[3] + p[4]*of[4]
		if prompts < starving*takes || takes > far*x.Token || x.Token > far*takes {
			run.n = 0
			continue
		}
		if run.n == 0 {
			run.from, run.prompts, run.token, run.without = r.Stretches[i-1].At, 0, 0, 0
		}
		run.n, run.to = run.n+1, x.At
		run.prompts, run.token, run.without = run.prompts+prompts/takes*x.Token, run.token+x.Token, run.without+x.Token*(1-prompts/takes)
		if run.to-run.from > best.to-best.from {
			best = run
		}
	}
	if best.n < judge.FewLimited || best.to-best.from < least {
		return f, false
	}
	share, n := best.prompts/best.token, float64(best.n)
	f = finding.Finding{Subkind: held.Prefill, At: r.Where, Since: best.from, Until: best.to, Cost: share * l.Running(r, l.Between(best.from, best.to)),
		Metric: finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: best.without / n * 1e9, After: best.token / n * 1e9}}
	f.Brief = fmt.Sprintf("prefills take %s %% of the time of %s, because they go before decoding: a token takes %s, %s without them",
		words.InPercent(share), r.Where.String(), words.Nearly(int64(f.Metric.After)), words.Nearly(int64(f.Metric.Before)))
	f.Text = lasts(f.Since, f.Until) + f.Brief
	f.Evidence = append(f.Evidence, finding.Sentence("SGLang decodes only when no prompt can be computed, unless --enable-mixed-chunk or --prefill-decode-interval says otherwise"))
	return f, true
}
