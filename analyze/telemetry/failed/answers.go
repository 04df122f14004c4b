package failed

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A counted is the number of answers of a kind that a server gave, from when to when, and in how many buckets of
// time.
type counted struct {
	n           float64
	first, last trace.Time
	buckets     int
	bucket      int    // the last bucket counted, plus one
	counter     string // name of the gateway's or server's counter; "" if from a log
	since       bool   // they are all since its process began, by the only scrape
}

func (c *counted) add(at trace.Time, n float64, bucket int) {
	if c.n += n; c.first == 0 || at < c.first {
		c.first = at
	}
	c.last = max(c.last, at)
	if bucket+1 != c.bucket {
		c.bucket = bucket + 1
		c.buckets++
	}
}

// between says when the answers were given.
func (c *counted) between() string {
	if c.first == c.last {
		return "at " + words.TimeOfDay(c.first)
	}
	return fmt.Sprintf("between %s and %s", words.TimeOfDay(c.first), words.TimeOfDay(c.last))
}

// An answering is the answers of a server: those that are server errors, those that refuse too many requests, and, where counters tell, all.
type answering struct{ errors, many, all counted }

// answered counts the answers of each server. Several counters may count the same answers: that with the most counts.
func answered(l *telemetry.Logged) []answering {
	of := make([]answering, len(l.Set.Servers))
	for i := range l.Set.List {
		s := &l.Set.List[i]
		var to *counted
		switch a := &of[l.Set.Places[s.Place].Server]; s.Metric {
		case series.ServerErrors:
			to = &a.errors
		case series.Refused:
			to = &a.many
		case series.Answers:
			to = &a.all
		default:
			continue
		}
		one := *to
		if s.Label != 0 {
			one = counted{}
			one.counter, one.since = strings.CutSuffix(l.Set.Syms.Name(s.Label), series.SinceBegun)
		}
		for x := range l.Set.Each(i) {
			if l.Opt.Inside(x.Time) {
				one.add(x.Time, x.Value, l.Grid.Of(x.Time))
			}
		}
		if one.n > to.n {
			*to = one
		}
	}
	return of
}

// others returns the number of answers of a server that are neither; 0 if unknown.
func (a *answering) others() float64 {
	if a.all.since != (a.errors.since || a.many.since) {
		return 0
	}
	return max(0, a.all.n-a.errors.n-a.many.n)
}

// serverErrors finds answers with an HTTP status of 500 or more, and with 429 (too many requests).
func serverErrors(l *telemetry.Logged) (out []finding.Finding) {
	of := answered(l)
	turned, taken := refusals(l), sync.OnceValue(func() float64 { return takenIn(l) })
	for server := range l.Set.Servers {
		a, turned := &of[server], turned[int32(server)]
		if a.errors.n == 0 && a.many.n == 0 {
			for _, e := range turned {
				f := failure(l, e, HTTP)
				loses(&f, lost(l, e.Server, float64(e.N), taken(), lasted(l, e)))
				f.Evidence = append(f.Evidence, complained(l, e, complaintsWith(l, e))...)
				out = append(out, f)
			}
			continue
		}
		f := a.finding(l, int32(server))
		if taken := taken(); taken > 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("servers took in %s", words.Counted(int(taken), "request")))
		}
		if n := a.errors.n + a.many.n; !a.errors.since && !a.many.since {
			loses(&f, lost(l, int32(server), n, max(taken(), a.others()), float64(a.errors.buckets+a.many.buckets)/float64(max(1, l.Grid.N()))))
			if f.Cost == 0 && a.others() > 0 { // nothing but counters
				f.Cost, f.BasisText = n/a.all.n, "its requests"
			}
		}
		for _, e := range turned {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", l.Sentence(e)))
		}
		for i := range l.Events {
			if e := &l.Events[i]; e.Server == int32(server) && isCount(e) {
				f.Evidence = append(f.Evidence, finding.Sentence("%s", l.Sentence(e)))
			}
		}
		out = append(out, f)
	}
	return out
}

// finding makes the finding about bad answers of a server, without its cost.
func (a *answering) finding(l *telemetry.Logged, server int32) finding.Finding {
	s, errors, many := &l.Set.Servers[server], &a.errors, &a.many
	f := finding.Finding{Subkind: HTTP, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Metric: finding.Metric{Name: ServerErrors, Before: math.NaN(), After: errors.n}}
	requests := func(n float64) string {
		if a.others() > 0 {
			return fmt.Sprintf("%s of %s", words.Thousands(int64(n)), words.Counted(int(a.all.n), "request"))
		}
		return words.Counted(int(n), "request")
	}
	tooMany := fmt.Sprintf("%s with 429 (too many requests) %s", requests(many.n), many.between())
	switch {
	case errors.since, many.since:
		return a.sinceBegun(s, f, requests)
	case errors.n == 0:
		f.Since, f.Until, f.Metric.Name, f.Metric.After = many.first, many.last, "answers with 429", many.n
		f.Text = fmt.Sprintf("%s answers %s", telemetry.Host(s), tooMany)
		if many.counter != "" {
			f.Evidence = append(f.Evidence, many.evidence()...)
		}
	default:
		f.Since, f.Until = errors.first, errors.last
		f.Text = fmt.Sprintf("%s answers %s with a server error %s", telemetry.Host(s), requests(errors.n), errors.between())
		f.Evidence = append(f.Evidence, errors.evidence()...)
		if many.n > 0 {
			f.Text += ", and " + tooMany
			f.Since, f.Until = min(errors.first, many.first), max(errors.last, many.last)
		}
	}
	if f.Until == f.Since {
		f.Until = 0
	}
	return f
}

// sinceBegun completes the finding about bad answers since the process of a server began.
func (a *answering) sinceBegun(s *series.Server, f finding.Finding, requests func(float64) string) finding.Finding {
	const refused = " (429, too many requests)"
	at := max(a.errors.last, a.many.last)
	switch {
	case a.errors.n == 0:
		f.Metric.Name, f.Metric.After = "answers with 429", a.many.n
		f.Text = fmt.Sprintf("%s refused %s%s", telemetry.Host(s), requests(a.many.n), refused)
	case a.many.n == 0:
		f.Text = fmt.Sprintf("%s failed %s", telemetry.Host(s), requests(a.errors.n))
	default:
		f.Text = fmt.Sprintf("%s failed %s, and refused %s%s", telemetry.Host(s), requests(a.errors.n), words.Thousands(int64(a.many.n)), refused)
	}
	f.Severity = finding.Warning
	f.Text += " since it began, by its scrape at " + words.TimeOfDay(at)
	f.Evidence = slices.Concat(a.errors.evidence(), a.many.evidence(), []finding.Evidence{finding.Sentence("one scrape does not tell when that was: a later one tells whether it goes on")})
	return f
}

// evidence says who counted the answers, if there are any.
func (c *counted) evidence() []finding.Evidence {
	switch {
	case c.n == 0:
		return nil
	case c.counter != "":
		return []finding.Evidence{finding.Sentence("%s counts them", c.counter)}
	}
	return []finding.Evidence{finding.Sentence("its log has answers with an HTTP status of 500 or more")}
}

// A count is what counters of a server counted from when to when; from 0 is since it was started.
type count struct {
	n        float64
	from, to trace.Time
}

// counts returns what some counters of each server counted: those with one of these names, which may end in a label.
func counts(l *telemetry.Logged, names ...string) []count {
	sums := make([]count, len(l.Set.Servers))
	begin, _, _ := l.Set.Bounds()
	for i := range l.Set.List {
		s := &l.Set.List[i]
		m := l.Set.Metric(s.Metric)
		if m.Kind != series.Counter || !slices.ContainsFunc(names, func(name string) bool {
			name, label, labeled := strings.Cut(name, "{")
			return strings.HasSuffix(m.Name, name) && (!labeled || l.Set.HasLabel(s.Label, label))
		}) {
			continue
		}
		sum := &sums[l.Set.Places[s.Place].Server]
		n, from, to := grown(l.Set, i, begin)
		if sum.n += n; from != 0 {
			sum.from, sum.to = order.Earlier(sum.from, from), max(sum.to, to)
		} else {
			_, to, _ := l.Set.Extent(i)
			sum.to = max(sum.to, to)
		}
	}
	return sums
}

// abortions finds servers that aborted more than a few of the requests that they counted, even with a single scrape.
func abortions(l *telemetry.Logged) []finding.Finding {
	out := abortedWaiting(l)
	abortedBy, allOf := counts(l, "num_aborted_requests_total", "vllm:request_success_total{finished_reason=abort"), counts(l, "num_requests_total", "vllm:request_success_total")
	for server := range l.Set.Servers {
		aborted, all := abortedBy[server], allOf[server]
		if aborted.n < finding.FewDelayed || finding.DelayedOneIn*aborted.n < all.n || all.n == 0 {
			continue
		}
		s := &l.Set.Servers[server]
		f := finding.Finding{Subkind: Aborted, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Severity: finding.Info, Metric: finding.Metric{Name: "aborted requests", Before: math.NaN(), After: aborted.n}}
		if 2*aborted.n > all.n {
			f.Severity = finding.Warning
		}
		during, at := "since it was started", ", at "+words.TimeOfDay(aborted.to)
		if aborted.from != 0 {
			f.Since, f.Until = aborted.from, aborted.to
			during, at = fmt.Sprintf("between %s and %s", words.TimeOfDay(aborted.from), words.TimeOfDay(aborted.to)), ""
		}
		f.Text = fmt.Sprintf("%s aborted %s %s, and counts %s in all%s", telemetry.Host(s), words.Counted(int(aborted.n), "request"), during, words.Thousands(int64(all.n)), at)
		f.Evidence = append(f.Evidence, finding.Sentence("a request is aborted when its client disconnects before the answer, or when the server gives up on it"))
		out = append(out, f)
	}
	return out
}

// abortedWaiting finds requests that were aborted while they waited for a KV cache, if nothing says that a transfer
// failed.
func abortedWaiting(l *telemetry.Logged) (out []finding.Finding) {
	var list []*telemetry.Event
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind == series.ClientGone && strings.HasPrefix(e.Text, series.AbortedWaiting) && !near(l, e, func(o *telemetry.Event) bool { return ends(o) || isLostTransfer(o) }) {
			list = append(list, e)
		}
	}
	for _, group := range atOnce(list, func(e *telemetry.Event) int32 { return e.Server }) {
		f, n, within := failure(l, group[0], Aborted), 0.0, 0.0
		for _, e := range group {
			n, within = n+float64(e.N), max(within, lasted(l, e))
		}
		f.Severity, f.Metric.After = finding.Info, n
		f.Cost = lost(l, group[0].Server, n, takenIn(l), within)
		f.Evidence = append([]finding.Evidence{finding.Sentence("a request is aborted by its client, or by a router that gave up on it: the log does not say which")}, f.Evidence...)
		out = append(out, f)
	}
	return out
}

// refusals returns, by server, the events of a router that had no server for a request, or no place in its queue.
func refusals(l *telemetry.Logged) map[int32][]*telemetry.Event {
	of := map[int32][]*telemetry.Event{}
	for i := range l.Events {
		if e := &l.Events[i]; e.Kind == series.Refusal {
			of[e.Server] = append(of[e.Server], e)
		}
	}
	return of
}

// takenIn returns the number of requests that servers took in, without decode servers, whose requests come from
// prefill servers; 0 if unknown.
func takenIn(l *telemetry.Logged) (n float64) {
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if r.Where.Role == request.Decode || !r.Has(series.NewSeqs) {
			continue
		}
		seqs, _ := r.TakenIn()
		for _, came := range seqs {
			n += telemetry.Zero(came)
		}
	}
	return n
}

// lost returns the cost of n failed requests of a server, as a share of the time of all servers; 0 if unknown,
// because nothing tells how many requests did not fail. within is the share of the time in which any failed, which is
// divided by the number of servers. The cost is at most the failed requests' share of all requests.
func lost(l *telemetry.Logged, server int32, n, taken, within float64) float64 {
	if l.Grid.N() == 0 || taken <= 0 {
		return 0
	}
	if telemetry.Role(&l.Set.Servers[server]) != request.Router {
		within /= float64(serversOf(l))
	}
	return min(1, max(least, min(within, n/(n+taken))))
}

// loses sets the cost of failed requests: a failure whose cost is unknown is critical, too.
func loses(f *finding.Finding, cost float64) {
	if f.Cost = cost; cost == 0 {
		f.Severity = cmp.Or(f.Severity, finding.Critical)
	}
}

// least is the smallest share of the time that an event costs.
const least = 0.001

// share returns the share of the total time of some servers for which one of them was away.
func share(away, of trace.Time, servers int) float64 {
	return min(1, max(least, float64(away)/max(1, float64(of))/float64(servers)))
}

// serversOf returns the number of servers that log batches or count their work, at least one.
func serversOf(l *telemetry.Logged) int {
	servers := map[int32]bool{}
	for i := range l.Ranks {
		servers[l.Ranks[i].Server] = true
	}
	return max(1, len(servers))
}

// serversWith returns the number of servers that log batches or count their work, and of one more if it does neither.
func serversWith(l *telemetry.Logged, server int32) int {
	n := serversOf(l)
	if len(l.Ranks) > 0 && !slices.ContainsFunc(l.Ranks, func(r telemetry.Rank) bool { return r.Server == server }) {
		n++
	}
	return n
}

// routedTo returns the number of servers that run requests, including those without logs that a router names.
func routedTo(l *telemetry.Logged) (n int) {
	for i := range l.Set.Servers {
		if telemetry.Role(&l.Set.Servers[i]) != request.Router {
			n++
		}
	}
	return max(1, n)
}

// FailedRequests is the subkind of findings of requests of a load generator that were not answered.
const FailedRequests = "failed requests"

// failedRuns finds runs of a load generator in which requests failed, by its own count. A summary has no times, and one without a count of
// failed requests tells of them only if none succeeded.
func failedRuns(l *telemetry.Logged) (out []finding.Finding) {
	for i := range l.Set.Runs {
		r := &l.Set.Runs[i]
		all := r.Completed + r.Failed
		if r.Completed > 0 && r.Failed == 0 {
			continue
		}
		name := l.Set.Sources[r.Source].Name
		f := finding.Finding{Subkind: FailedRequests, At: place.At(request.Unified, name, trace.NoRank, l.Names), Confidence: finding.Certain, BasisText: "requests of the run", Cost: 1,
			Metric: finding.Metric{Name: "failed requests", Before: math.NaN(), After: float64(r.Failed)}}
		f.Text = fmt.Sprintf("no request of the run in %s succeeded", name)
		if r.Completed > 0 {
			f.Cost = float64(r.Failed) / float64(all)
			f.Text = fmt.Sprintf("%d of %s of the run in %s failed", r.Failed, words.Counted(all, "request"), name)
		}
		f.Show = [][]string{{"--table", "bench"}}
		f.Evidence = append(f.Evidence, finding.Sentence("%s:%d: the load generator counted them; the server's log tells why", name, r.Line))
		out = append(out, f)
	}
	return out
}
