package transfer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// nearlyAll is the share from which nearly all slow transfers are in one place.
const nearlyAll = 0.8

// Findings returns whether KV transfers are slow. If they have been since some time, between two ranks, from or to one of
// several, or between all, the finding is about a link, which explains what takes longer from then on.
func (x *Transfers) Findings(b *cause.Costs) []finding.Finding {
	if x == nil {
		return nil
	}
	if x.Slower != nil {
		return b.Price([]finding.Finding{x.slower(b)})
	}
	if len(x.Slow) == 0 {
		return nil
	}
	const rarely = 500 // one in so many
	found := b.Price([]finding.Finding{x.someSlow(b)})
	if len(x.Slow) < max(finding.FewDelayed, x.N/rarely) && found[0].Cost < 1.0/finding.DelayedOneIn {
		return nil // a link is busy now and then
	}
	return found
}

// slower says that all transfers became slower.
func (x *Transfers) slower(b *cause.Costs) finding.Finding {
	f := x.finding(x.Verdict(), slices.Sorted(maps.Keys(x.Slower.beyond)), b.Amounts(x.Slower.beyond, cause.Transfer))
	f.Subkind, f.Show = finding.SlowLink, [][]string{{"--tail", "--table", "transfers"}}
	f.Metric = finding.Metric{Name: "KV transfer p50", Unit: table.Duration, Before: float64(x.Slower.Before), After: float64(x.Slower.After)}
	if n := len(x.Pairs); n > 1 {
		all := "both"
		if n > 2 {
			all = fmt.Sprintf("all %d", n)
		}
		f.Evidence = []finding.Evidence{finding.Sentence("it is so for %s pairs of a prefill and a decode rank", all)}
	}
	return f
}

// someSlow says that some transfers are slow, and where.
func (x *Transfers) someSlow(b *cause.Costs) finding.Finding {
	worst := slices.MaxFunc(x.Pairs, func(p, q Pair) int { return p.Slow - q.Slow })
	from, to := x.set.RankName(int(worst.From)), x.set.RankName(int(worst.To))
	evidence := finding.Sentence("%d of the slow ones go from %s to %s", worst.Slow, from, to)
	pair, where, at := "", "", int32(request.None)
	if x.From.Share >= nearlyAll && !x.From.Only {
		at, where = x.From.Proc, fmt.Sprintf("; %.0f %% of that time is on %s", 100*x.From.Share, x.set.RankName(int(x.From.Proc)))
	}
	there, elsewhere := x.to(worst.To)
	const apart = 5 // times the share of slow transfers elsewhere
	switch slow := float64(len(x.Slow)); {
	case float64(worst.Slow) >= nearlyAll*slow && 2*worst.N <= x.N:
		pair = fmt.Sprintf("%d of %d slow KV transfers go from %s to %s", worst.Slow, len(x.Slow), from, to)
		where = fmt.Sprintf("; %d of them go from %s to %s", worst.Slow, from, to)
	case float64(there.Slow) >= nearlyAll*slow && where == "" && elsewhere.N >= finding.FewCompared && there.share() >= apart*elsewhere.share(): // whoever the sender is: the receiver's link
		where, at = fmt.Sprintf("; %d of them go to %s, from all of the prefill ranks", there.Slow, to), worst.To
		evidence = finding.Sentence("%d of the %s to %s are slow, and %d of the %d to the others",
			there.Slow, words.Counted(there.N, "KV transfer"), to, elsewhere.Slow, elsewhere.N)
	}
	f := x.finding(x.Verdict()+where, x.requests(), b.Beyond(x.requests(), cause.Transfer))
	if where != "" && x.Since != 0 {
		f.Subkind = finding.SlowLink
	}
	if pair != "" && x.Since != 0 {
		f.Text = fmt.Sprintf("KV transfers from %s to %s are slow%s: %d of %d take %s; the median of all is %s", from, to, x.since(), worst.Slow, worst.N, x.took(), words.Nearly(x.Median))
		pair = fmt.Sprintf("KV transfers from %s to %s are slow", from, to)
	}
	if at != request.None {
		f.At = place.NewLocation(x.set, int(at))
	}
	f.Brief, f.Show = pair, [][]string{{"--tail", "--table", "slowtransfers"}}
	f.Metric = finding.Metric{Name: "longest KV transfer", Unit: table.Duration, Before: float64(x.Median), After: float64(x.Longest)}
	f.Evidence = []finding.Evidence{evidence.In("transfers", finding.Row("from", from, "to", to), "slow", float64(worst.Slow))}
	return f
}

// finding returns a finding about the transfers of some requests.
func (x *Transfers) finding(text string, requests []int, claim finding.Claim) finding.Finding {
	return finding.Finding{Text: text, Claim: claim, Since: x.Since, Until: x.Until, Affected: finding.AffectedOf(x.set, requests)}
}
