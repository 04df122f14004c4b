package slow

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// spokenBy returns the number of intervals in which a rank logged a batch.
func spokenBy(l *telemetry.Logged, r *telemetry.Rank) (n int) {
	for b := range l.Grid.N() {
		if judge.Speaks(r, b) {
			n++
		}
	}
	return n
}

// busy returns the buckets in which any of some ranks had something to do.
func busy(l *telemetry.Logged, ranks []*telemetry.Rank) (buckets []int) {
	for b := range l.Grid.N() {
		if slices.ContainsFunc(ranks, func(r *telemetry.Rank) bool { return load(r, b) > 0 }) {
			buckets = append(buckets, b)
		}
	}
	return buckets
}

// load returns the load of a rank in a bucket: running requests, or prompt tokens on a prefill server.
func load(r *telemetry.Rank, b int) float64 {
	if r.Where.Role == request.Prefill {
		if p := r.Points[series.NewTokens]; p != nil {
			return p[b].Sum
		}
		return 0
	}
	if p := r.Points[series.Running]; p != nil && p[b].N > 0 {
		return p[b].Mean()
	}
	return 0
}

// groups returns the ranks that may share work: the DP ranks of a server, or the servers of a role. Logs do not show
// whether the latter do; they may serve different models.
func groups(l *telemetry.Logged) [][]*telemetry.Rank {
	var by order.Groups[string, []*telemetry.Rank]
	for i := range l.Ranks {
		r := &l.Ranks[i]
		key := fmt.Sprint(r.Server)
		if !isOfSeveral(l, r) {
			key = "role " + r.Where.Role.String()
		}
		order.Add(&by, key, r)
	}
	return order.Only(by.List, func(ranks []*telemetry.Rank) bool { return len(ranks) > 1 })
}

// isOfSeveral reports whether a rank is one of several DP ranks of a server. vLLM numbers them from 0 even if there
// is only one.
func isOfSeveral(l *telemetry.Logged, r *telemetry.Rank) bool {
	return r.Where.Rank.DP >= 0 && !l.IsAlone(r)
}

// Imbalances finds ranks that get more than their share of the load.
func Imbalances(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := judge.Check(l, "logged load of ranks")
	groups := groups(l)
	if check.Reason == "" && len(groups) == 0 {
		check.Reason = "no ranks that share work log batches"
	}
	var out []finding.Finding
	for _, ranks := range groups {
		if f, ok := imbalance(l, ranks); ok {
			out = append(out, f)
		}
	}
	return out, check
}

// sharesOf returns each rank's share of the load of all, by bucket, and the rank with the largest mean share.
func sharesOf(ranks []*telemetry.Rank, buckets []int) (shares [][]float64, worst int) {
	sums := make([]float64, len(buckets))
	shares = make([][]float64, len(ranks))
	for i, r := range ranks {
		shares[i] = make([]float64, len(buckets))
		for k, b := range buckets {
			shares[i][k] = load(r, b)
			sums[k] += shares[i][k]
		}
	}
	highest := 0.0
	for i, share := range shares {
		for k := range share {
			share[k] /= sums[k]
		}
		if m := judge.Mean(share); m > highest {
			worst, highest = i, m
		}
	}
	return shares, worst
}

// unequal returns the range in which one of n ranks has much more than an equal share, if that has an onset, or else
// the whole range.
func unequal(share []float64, n float64) (from, to int) {
	changes := changepoint.Levels(share, changepoint.Options{Alpha: judge.Surely, Keep: func(from, k, to int) bool {
		return judge.Mean(share[k:to]) > judge.MuchMore/n && judge.Mean(share[from:k]) < (1+judge.MuchMore)/2/n || judge.Mean(share[from:k]) > judge.MuchMore/n && judge.Mean(share[k:to]) < (1+judge.MuchMore)/2/n
	}})
	for _, c := range changes {
		if judge.Mean(share[c.At:c.To]) > judge.MuchMore/n && judge.Mean(share[c.From:c.At]) <= judge.Mean(share[c.At:c.To]) {
			return c.At, c.To
		}
	}
	return 0, len(share)
}

// imbalance finds a rank that has much more load than an equal share among those that share work, since when, and
// what that costs.
func imbalance(l *telemetry.Logged, ranks []*telemetry.Rank) (f finding.Finding, ok bool) {
	buckets := busy(l, ranks)
	if !isOfSeveral(l, ranks[0]) { // a server that logs nothing may still have something to do
		buckets = slices.DeleteFunc(buckets, func(b int) bool {
			return slices.ContainsFunc(ranks, func(r *telemetry.Rank) bool { return !judge.Speaks(r, b) })
		})
	}
	buckets = slices.DeleteFunc(buckets, func(b int) bool { return areFrozen(ranks, b) })
	if len(buckets) < judge.FewBuckets {
		return f, false
	}
	n := float64(len(ranks))
	shares, worst := sharesOf(ranks, buckets)
	r, share := ranks[worst], shares[worst]
	from, to := unequal(share, n)
	if from > 0 {
		f.Since = l.Start(buckets[from])
	}
	if to < len(share) {
		f.Until = l.Start(buckets[to])
	}
	part := judge.Mean(share[from:to])
	p := highestByChance(shares, worst, from, to)
	if part < judge.MuchMore/n || part*n-1 < 0.25 || p > judge.Surely {
		return f, false
	}
	of := "its"
	holds := ""
	if !isOfSeveral(l, r) {
		of = "the"
		if f.Since == 0 || judge.Mean(share[:from]) > judge.MuchMore/n || !sharedBefore(shares, from) {
			return f, false // it is unknown whether they share work
		}
		if !gets(l, ranks, worst, buckets, from, to) {
			if holds = keeps(l, ranks, worst, buckets[from:to]); holds == "" {
				return f, false // it is only slower
			}
		}
	} else if len(peers(l, r)) > 0 && (isSlow(l, r) || len(longerForSame(l, r)) > 0) {
		return f, false
	} else if own, all := arrived(l, ranks, worst, buckets[from:to]); all > 0 && own*n <= judge.MuchMore*all {
		return f, false // each request stays longer there, for which other findings have the reason
	}
	what := "running requests"
	if r.Where.Role == request.Prefill {
		what = "prompt tokens"
	}
	f.Text = fmt.Sprintf("%s has %s %% of the %s of %s %d ranks, an equal share is %s %%", r.Where.String(), words.InPercent(part), what, of, len(ranks), words.InPercent(1/n))
	f.Text += sinceOrAlways(f.Since) + holds
	if holds != "" {
		f.Confidence = finding.Likely
	}
	f.At, f.P = r.Where, finding.Chance(p)
	f.Metric = finding.Metric{Name: "share of " + what, Unit: table.Share, Before: 1 / n, After: part}
	f.Evidence = []finding.Evidence{finding.Sentence("it has the most in %d of %d intervals of %s", wins(shares, worst, from, to), to-from, words.Nearly(l.Grid.Bucket))}
	why := ": its batches are larger"
	if holds != "" {
		why = ""
	}
	cost, shows := suffers(l, ranks, worst, buckets[from:to], why)
	f.Cost, f.Evidence = cost, append(f.Evidence, shows...)
	return f, true
}

// areFrozen reports whether scrapes of some ranks show nothing but what the ones before did: a server that hangs still answers them.
func areFrozen(ranks []*telemetry.Rank, b int) bool {
	return b > 0 && !slices.ContainsFunc(ranks, func(r *telemetry.Rank) bool {
		return !r.Scraped || slices.ContainsFunc(series.Ranked, func(m series.MetricID) bool { p := r.Points[m]; return p != nil && p[b].Mean() != p[b-1].Mean() })
	})
}

// suffers returns the cost of rank i's higher load in some buckets, as a share of the time of all requests, and the
// evidence: requests that wait only there, and tokens that take longer there. why ends the sentence about the latter.
func suffers(l *telemetry.Logged, ranks []*telemetry.Rank, i int, buckets []int, why string) (cost float64, shows []finding.Evidence) {
	waits, idle := waitsAlone(l, ranks, i, buckets)
	longer, here, there := longerThere(l, ranks, i, buckets)
	if waits > 0 {
		shows = append(shows, finding.Sentence("for %s %% of the time, requests wait there while none waits on %s", words.InPercent(waits), idle))
	}
	if longer > 0 {
		shows = append(shows, finding.Sentence("a token takes %s there, %s on the others%s", words.Nearly(int64(here*1e9)), words.Nearly(int64(there*1e9)), why))
	}
	in := func(b int) bool { _, ok := slices.BinarySearch(buckets, b); return ok }
	if cost = longer * l.Running(ranks[i], in); waits > 0 {
		cost += l.Waiting(ranks[i], in)
	}
	return cost, shows
}

// sharedBefore reports whether ranks had about the same load before a bucket, so that they share work.
func sharedBefore(shares [][]float64, from int) bool {
	n := float64(len(shares))
	for _, s := range shares {
		if part := judge.Mean(s[:from]); from < judge.FewBuckets || part > judge.MuchMore/n || part < 1/judge.MuchMore/n {
			return false
		}
	}
	return true
}

// gets reports whether a rank takes in more than its share of the requests, and does not just keep them longer.
// Decode servers do not log what they take in.
func gets(l *telemetry.Logged, ranks []*telemetry.Rank, i int, buckets []int, from, to int) bool {
	share := func(m series.MetricID, of func(telemetry.Point) float64) (own, all float64) {
		for k, r := range ranks {
			p := r.Points[m]
			for _, b := range buckets[from:to] {
				if p == nil || p[b].N == 0 {
					continue
				}
				if all += of(p[b]); k == i {
					own += of(p[b])
				}
			}
		}
		return own, all
	}
	n := float64(len(ranks))
	if own, all := share(series.NewSeqs, func(p telemetry.Point) float64 { return p.Sum }); all > 0 {
		return own*n > judge.MuchMore*all
	}
	if own, all := arrived(l, ranks, i, buckets[from:to]); all > 0 {
		return own*n > judge.MuchMore*all
	}
	own, all := share(series.Generation, telemetry.Point.Mean) // keeping requests longer does not generate more tokens
	return (all == 0 && !ranks[i].Scraped || own*n > judge.MuchLonger*all) && !isSlow(l, ranks[i])
}

// arrived returns the number of requests that come to rank i in some buckets, and to all ranks, from their
// histograms; 0 if any of them has none.
func arrived(l *telemetry.Logged, ranks []*telemetry.Rank, i int, buckets []int) (own, all float64) {
	for k, r := range ranks {
		came, _ := l.Arrivals(r)
		if came == nil {
			return 0, 0
		}
		for _, b := range buckets {
			if all += came[b]; k == i {
				own += came[b]
			}
		}
	}
	return own, all
}

// keeps explains why a rank that is only scraped has more running requests than others that share work with it. The
// number running is the arrival rate times the time that each stays, so a rank that does not generate more tokens did
// not get more requests. It returns "" if that is unknown, or another finding explains it.
func keeps(l *telemetry.Logged, ranks []*telemetry.Rank, i int, buckets []int) string {
	if !ranks[i].Scraped || isSlow(l, ranks[i]) {
		return ""
	}
	if own, all := arrived(l, ranks, i, buckets); all > 0 {
		return fmt.Sprintf(", but gets only %s %% of the arrivals: each request stays longer there", words.InPercent(own/all))
	}
	var own, others []float64
	for k, r := range ranks {
		for _, b := range buckets {
			if p := r.Points[series.Generation]; p != nil && p[b].N > 0 && k == i {
				own = append(own, p[b].Mean())
			} else if p != nil && p[b].N > 0 {
				others = append(others, p[b].Mean())
			}
		}
	}
	switch x, y := judge.Mean(own), judge.Mean(others); {
	case math.IsNaN(x), math.IsNaN(y):
		return ": more come to it, or each stays longer, which these metrics do not show"
	case x <= noMore*y:
		return fmt.Sprintf(", and generates no more than they do (%s tokens a second, %s on each of them): each stays longer there", words.ThreeDigits(x), words.ThreeDigits(y))
	}
	return ""
}

// isSlow reports whether the tokens of a rank take longer than those of its peers for the same load.
func isSlow(l *telemetry.Logged, r *telemetry.Rank) bool {
	c := comparison{l: l}
	_, ok := c.slowerThanPeers(r)
	return ok
}

// longerThere returns how much longer tokens take on a rank than on the others in the same buckets, as a fraction of
// their time, and how long they take on either, in s.
func longerThere(l *telemetry.Logged, ranks []*telemetry.Rank, i int, buckets []int) (part, here, there float64) {
	var own, others []float64
	for k, r := range ranks {
		steps := stepTime(l, r)
		for _, b := range buckets {
			if k == i {
				own = append(own, steps[b])
			} else {
				others = append(others, steps[b])
			}
		}
	}
	here, there = telemetry.Middle(own), telemetry.Middle(others)
	if !(here > there) {
		return 0, here, there
	}
	return 1 - there/here, here, there
}

// sinceOrAlways ends a sentence with the onset.
func sinceOrAlways(t trace.Time) string {
	if t == 0 {
		return ", all the time"
	}
	return ", since " + words.TimeOfDay(t)
}

// wins returns the number of buckets in which a rank has the most.
func wins(shares [][]float64, i, from, to int) (n int) {
	for b := from; b < to; b++ {
		if !slices.ContainsFunc(shares, func(o []float64) bool { return o[b] > shares[i][b] }) {
			n++
		}
	}
	return n
}

// highestByChance returns the probability that one of some ranks has the most so often if all are alike. Neighboring
// buckets share their requests, so they are grouped into at most 20 pieces.
func highestByChance(shares [][]float64, i, from, to int) float64 {
	const pieces = 20
	n := min(pieces, to-from)
	if n < 3 {
		return 1
	}
	won := 0
	for k := range n {
		a, b := from+k*(to-from)/n, from+(k+1)*(to-from)/n
		top := true
		for o := range shares {
			top = top && judge.Mean(shares[o][a:b]) <= judge.Mean(shares[i][a:b])
		}
		if top {
			won++
		}
	}
	return min(1, float64(len(shares))*significance.AtLeastOf(won, n, 1/float64(len(shares))))
}

// waitsAlone returns the share of time, in some buckets, in which requests wait on one rank while none waits on the
// rank with the shortest queue, and the name of the latter.
func waitsAlone(l *telemetry.Logged, ranks []*telemetry.Rank, i int, buckets []int) (part float64, idle string) {
	least := -1
	for k, r := range ranks {
		if k != i && (least < 0 || r.Mean(series.Queued) < ranks[least].Mean(series.Queued)) {
			least = k
		}
	}
	n := 0
	for _, b := range buckets {
		if queued(ranks[i], b) > 0 && queued(ranks[least], b) == 0 {
			n++
		}
	}
	return float64(n) / float64(l.Grid.N()), ranks[least].Where.String()
}

// queued returns the largest number of requests that waited on a rank in a bucket.
func queued(r *telemetry.Rank, b int) float64 {
	if p := r.Points[series.Queued]; p != nil {
		return p[b].Most
	}
	return 0
}
