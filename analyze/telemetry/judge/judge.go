// Package judge decides whether something about servers changed: in how many intervals, by how much, and since when;
// and which findings about several servers are the same.
package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
)

// FewBuckets is the fewest buckets that show what is usual.
const FewBuckets = 8

// Check counts the intervals that were examined.
func Check(l *telemetry.Logged, what string) finding.Check {
	c := finding.Check{What: what, Of: "interval", N: spoken(l), Needed: FewBuckets}
	if len(l.Ranks) == 0 {
		c.Reason = "no log has lines of batches"
	}
	return c
}

// spoken returns the number of intervals in which any rank logged a batch.
func spoken(l *telemetry.Logged) (n int) {
	for b := range l.Grid.N() {
		if slices.ContainsFunc(l.Ranks, func(r telemetry.Rank) bool { return Speaks(&r, b) }) {
			n++
		}
	}
	return n
}

// Speaks reports whether a rank logged a batch in a bucket.
func Speaks(r *telemetry.Rank, b int) bool {
	return slices.ContainsFunc(series.Ranked, func(m series.MetricID) bool { p := r.Points[m]; return p != nil && p[b].N > 0 })
}

// MuchMore is the least ratio by which a rank's load must exceed its share to be more than uneven requests explain.
// Reports on requests use the same ratio.
const MuchMore = 1.5

// Surely is the largest p-value of a reported change.
const Surely = 0.01

// FewLimited is the fewest consecutive intervals in which a queue must exist to be more than a few requests that came
// together, or the wait for a long prompt.
const FewLimited = 4

// MuchLonger is the least ratio by which tokens take longer than a model of the load explains.
const MuchLonger = 1.25

// MuchSlower is the least ratio by which tokens take longer after an event to be reported with it, because a change
// in load explains less.
const MuchSlower = 3

// Mean returns the mean of the values that are not NaN.
func Mean(list []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range list {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// Alike merges findings of the same subkind and time on several ranks of a role, led by the costliest one. Their
// costs, which are shares of the time of all ranks or of all requests, add up. A rank that loses much less than the
// leading one is evidence, but does not make it a matter of the role.
func Alike(list []finding.Finding) (out []finding.Finding) {
	type known struct {
		at   place.Location
		cost float64
	}
	var ranks [][]known // of each finding, the leading one first
	for _, f := range list {
		k := slices.IndexFunc(out, func(o finding.Finding) bool { return o.Subkind == f.Subkind && o.At.Role == f.At.Role && Meet(&o, &f) })
		if k < 0 {
			out, ranks = append(out, f), append(ranks, []known{{f.At, f.Cost}})
			continue
		}
		o := &out[k]
		together := min(1, o.Cost+f.Cost)
		leads := f.Cost > ranks[k][0].cost
		i := slices.IndexFunc(ranks[k], func(x known) bool { return x.at == f.At && f.At.Scope == place.OneRank })
		if i >= 0 { // such as longer prompts in addition to more requests
			together = max(o.Cost, f.Cost)
			ranks[k][i].cost = max(ranks[k][i].cost, f.Cost)
		} else {
			i, ranks[k] = len(ranks[k]), append(ranks[k], known{f.At, f.Cost})
		}
		if leads {
			ranks[k][0], ranks[k][i] = ranks[k][i], ranks[k][0]
			f.Evidence = append(f.Evidence, finding.Sentence("%s", o.Text))
			f.Evidence = append(f.Evidence, o.Evidence...)
			*o = f
		} else {
			o.Evidence = append(o.Evidence, finding.Sentence("%s", f.Text))
		}
		o.Cost = together
	}
	const little = 0.05 // what costs so much less elsewhere is not the same
	for k := range out {
		if n := order.Count(ranks[k][1:], func(x known) bool { return x.cost >= little*ranks[k][0].cost }); n > 0 {
			out[k].At.Scope = place.WholeRole
			out[k].Text += fmt.Sprintf("; the same goes for %s of its role", words.Counted(n, "other"))
		}
	}
	return out
}

// Meet reports whether the times of two findings overlap.
func Meet(f, g *finding.Finding) bool {
	return (f.Until == 0 || f.Until >= g.Since) && (g.Until == 0 || g.Until >= f.Since)
}

// Part returns the share of requests that a rank serves, as each request goes to one rank of its role.
func Part(l *telemetry.Logged, r *telemetry.Rank) float64 {
	return 1 / float64(order.Count(l.Ranks, func(o telemetry.Rank) bool { return o.Where.Role == r.Where.Role }))
}
