// Package judge says what it takes to say that something of servers changed: in how many intervals, by how much, and since when; and which
// findings about several servers say the same.
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

// FewBuckets is how many buckets it takes to say what is usual.
const FewBuckets = 8

// Check says how many intervals there were to look at.
func Check(l *telemetry.Logged, what string) finding.Check {
	c := finding.Check{What: what, Of: "interval", N: spoken(l), Needed: FewBuckets}
	if len(l.Ranks) == 0 {
		c.Reason = "no log has lines of batches"
	}
	return c
}

// spoken is in how many intervals any rank logged a batch.
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

// MuchMore is by how much a rank's load must exceed its share, to be more than uneven requests
// explain; it is what reports on requests ask for, too.
const MuchMore = 1.5

// Surely is the largest probability of what is said.
const Surely = 0.01

// FewLimited is in how many intervals that follow each other a queue must be there to be more than a few requests
// that came together, or the wait for a long prompt.
const FewLimited = 4

// MuchLonger is by how much tokens take longer, to be more than a model of what there is to do leaves unexplained.
const MuchLonger = 1.25

// MuchSlower is by how much tokens take longer behind something, to be told with it: the load may change that by less.
const MuchSlower = 3

// Mean is over those of a list that are numbers.
func Mean(list []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range list {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// Alike makes one finding of those of one subkind and time on several ranks of a role, led by the one that costs most. Their costs,
// which are parts of the time of all ranks or of all requests, add up.
func Alike(list []finding.Finding) (out []finding.Finding) {
	var most []float64 // what the one costs that leads
	var ranks [][]place.Location
	for _, f := range list {
		k := slices.IndexFunc(out, func(o finding.Finding) bool { return o.Subkind == f.Subkind && o.At.Role == f.At.Role && Meet(&o, &f) })
		if k < 0 {
			out, most, ranks = append(out, f), append(most, f.Cost), append(ranks, []place.Location{f.At})
			continue
		}
		o := &out[k]
		together := min(1, o.Cost+f.Cost)
		again := f.At.Scope == place.OneRank && slices.Contains(ranks[k], f.At) // such as longer prompts beside more requests
		if again {
			together = max(o.Cost, f.Cost)
		} else {
			ranks[k] = append(ranks[k], f.At)
		}
		if f.Cost > most[k] {
			most[k] = f.Cost
			f.Evidence = append(f.Evidence, finding.Sentence("%s", o.Text))
			f.Evidence = append(f.Evidence, o.Evidence...)
			*o = f
		} else {
			o.Evidence = append(o.Evidence, finding.Sentence("%s", f.Text))
		}
		if o.Cost = together; len(ranks[k]) > 1 {
			o.At.Scope = place.WholeRole
		}
	}
	for k := range out {
		if n := len(ranks[k]) - 1; n > 0 {
			out[k].Text += fmt.Sprintf("; the same goes for %s of its role", words.Counted(n, "other"))
		}
	}
	return out
}

// Meet reports whether two findings are of one time.
func Meet(f, g *finding.Finding) bool {
	return (f.Until == 0 || f.Until >= g.Since) && (g.Until == 0 || g.Until >= f.Since)
}

// Part returns which part of the requests a rank serves: each goes to one of its role.
func Part(l *telemetry.Logged, r *telemetry.Rank) float64 {
	return 1 / float64(order.Count(l.Ranks, func(o telemetry.Rank) bool { return o.Where.Role == r.Where.Role }))
}
