package requests

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// GivenUp is the subkind of findings about clients that give up.
const GivenUp = "given up"

// Clients that give up after the same time have a timeout, if they are at least fewGivenUp, one in givenUpOneIn
// requests, and half of all that give up. Others may be users who have read enough.
const (
	fewGivenUp   = 5
	givenUpOneIn = 100
	sameTime     = 50          // they may differ by one part in sameTime of that time,
	sameTimeNs   = 50_000_000  // or by sameTimeNs, if that is longer
	minTimeOut   = 100_000_000 // ns; a client that leaves earlier has no timeout
)

// A timeOut is the time after which clients give up.
type timeOut struct {
	ns   int64
	gone []int // abandoned requests, as indexes into Set.Requests, sorted by end
	n    int   // number of gone that ended after about that time
}

// GiveUpFindings finds clients that give up after the same time, and since when.
func GiveUpFindings(s *request.Set) ([]finding.Finding, finding.Check) {
	t := findTimeOut(s)
	check := finding.Check{What: "failures", Of: "request", N: len(s.Requests), Needed: fewFailed}
	if t.n < fewGivenUp || t.n*givenUpOneIn < len(s.Requests) || 2*t.n < len(t.gone) {
		return nil, check
	}
	share := float64(len(t.gone)) / float64(len(s.Requests))
	most := words.Thousands(int64(t.n))
	if t.n == len(t.gone) {
		most = "all"
	}
	after := fmt.Sprintf("%s of them after %s (a time-out)", most, words.Nearly(t.ns))
	f := finding.Finding{
		Subkind: GivenUp, Cost: share, Affected: finding.AffectedOf(s, t.gone),
		Text:   fmt.Sprintf("the clients of %s of %s gave up, %s", words.Thousands(int64(len(t.gone))), words.Counted(len(s.Requests), "request"), after),
		Brief:  fmt.Sprintf("the clients of %s %% of all requests gave up, %s", words.InPercent(share), after),
		Metric: finding.Metric{Name: "requests given up per second", Unit: table.Number},
		Show:   [][]string{{"requests", "--status", request.Aborted.String(), "--limit", "20"}},
	}
	t.date(s, &f)
	return []finding.Finding{f}, check
}

// findTimeOut finds the time after which most clients give up, among those that do.
func findTimeOut(s *request.Set) (t timeOut) {
	var took []int64
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Aborted && !s.TurnedAway(r) && request.Plausible(r.Start, r.End) {
			t.gone = append(t.gone, i)
			if ns := int64(r.End - r.Start); ns >= minTimeOut {
				took = append(took, ns)
			}
		}
	}
	slices.SortFunc(t.gone, func(x, y int) int { return cmp.Compare(s.Requests[x].End, s.Requests[y].End) })
	slices.Sort(took)
	for from, to := 0, 0; from < len(took); from++ {
		for to < len(took) && took[to]-took[from] <= max(sameTimeNs, took[from]/sameTime) {
			to++
		}
		if to-from > t.n {
			t.n, t.ns = to-from, took[(from+to)/2]
		}
	}
	return t
}

// Attempts groups abandoned requests into sequences that are likely retries by the same client: requests with the
// same prompt length, each soon after the one before, including a final one that was answered.
func Attempts(s *request.Set, gone []int) [][]int {
	const soon = trace.Time(30e9)
	in := order.Set(gone)
	var lists [][]int
	open := map[int64][]int{} // indexes into lists that may still continue, by prompt tokens
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		tokens := r.Metrics.PromptTokens
		if tokens <= 0 {
			if in[i] {
				lists = append(lists, []int{i})
			}
			continue
		}
		of := open[tokens]
		k := slices.IndexFunc(of, func(k int) bool {
			last := &s.Requests[lists[k][len(lists[k])-1]]
			return last.End <= r.Start && r.Start <= last.End+soon
		})
		switch {
		case k >= 0:
			list := of[k]
			lists[list] = append(lists[list], i)
			if !in[i] {
				open[tokens] = slices.Delete(of, k, k+1)
			}
		case in[i]:
			open[tokens] = append(of, len(lists))
			lists = append(lists, []int{i})
		}
	}
	return lists
}

// date adds since when more clients give up than before, if that has an onset.
func (t *timeOut) date(s *request.Set, f *finding.Finding) {
	const surely = 0.01
	gone := map[int]bool{}
	for _, i := range t.gone {
		gone[i] = true
	}
	var ended []int
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Finished || gone[i] {
			ended = append(ended, i)
		}
	}
	end := func(i int) trace.Time { return s.Requests[ended[i]].End }
	slices.SortFunc(ended, func(x, y int) int { return cmp.Compare(s.Requests[x].End, s.Requests[y].End) })
	is := order.Each(ended, func(i int) bool { return gone[i] })
	last := end(len(ended) - 1)
	rate := func(n int, from, to trace.Time) float64 { return distribution.Ratio(float64(n), float64(to-from)/1e9) }
	f.Metric.After = rate(len(t.gone), end(0), last)
	changes := changepoint.Shares(is, changepoint.Options{Alpha: surely})
	if len(changes) == 0 {
		return
	}
	k, to, count := changes[0].At, len(is), changepoint.Count(is)
	was := count.Share(0, k)
	for _, c := range changes[1:] { // until the share is no longer much higher
		if count.Share(c.At, c.To) <= 2*was {
			to = c.At
			break
		}
	}
	now := count.Share(k, to)
	if count.Share(k, changes[0].To) <= was {
		return
	}
	f.Since = end(k)
	if to < len(is) {
		f.Until, last = end(to), end(to)
	}
	f.Metric.Before, f.Metric.After = rate(count.In(0, k), end(0), f.Since), rate(count.In(k, to), f.Since, last)
	f.Text += fmt.Sprintf("; since %s, %s %% do, before %s %%", words.When(f.Since, end(changes[0].First), end(changes[0].Last)),
		words.InPercent(now), words.InPercent(was))
	f.Brief = fmt.Sprintf("since then, %s %% of clients give up, most of them after %s (before: %s %%)", words.InPercent(now), words.Nearly(t.ns), words.InPercent(was))
}
