package failed

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A counted is how many answers of a kind a server gave, between when, and in how many buckets of time.
type counted struct {
	n           float64
	first, last trace.Time
	buckets     int
	bucket      int    // the last one that was counted, plus one
	counter     string // of a gateway or a server, that says so; "" is a log
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

// between says when answers were given.
func (c *counted) between() string {
	if c.first == c.last {
		return "at " + words.TimeOfDay(c.first)
	}
	return fmt.Sprintf("between %s and %s", words.TimeOfDay(c.first), words.TimeOfDay(c.last))
}

// answered counts the answers of all servers, by server, that are errors, and those that too many requests came.
func answered(l *telemetry.Logged) (errors, many []counted) {
	errors, many = make([]counted, len(l.Set.Servers)), make([]counted, len(l.Set.Servers))
	for i := range l.Set.List {
		s, of := &l.Set.List[i], errors
		switch s.Metric {
		case series.ServerErrors:
		case series.Refused:
			of = many
		default:
			continue
		}
		if s.Label != 0 {
			of[l.Set.Places[s.Place].Server].counter = l.Set.Syms.Name(s.Label)
		}
		for x := range l.Set.Each(i) {
			if l.Opt.Inside(x.Time) {
				of[l.Set.Places[s.Place].Server].add(x.Time, x.Value, l.Grid.Of(x.Time))
			}
		}
	}
	return errors, many
}

// serverErrors finds answers with an HTTP status of 500 or more, and those with 429, that too many requests came.
func serverErrors(l *telemetry.Logged) (out []finding.Finding) {
	errors, many := answered(l)
	turned, taken := refusals(l), sync.OnceValue(func() float64 { return takenIn(l) })
	for server := range l.Set.Servers {
		errors, many, turned := &errors[server], &many[server], turned[int32(server)]
		if errors.n == 0 && many.n == 0 {
			for _, e := range turned {
				f := failure(l, e, HTTP)
				f.Cost = lost(l, e.Server, float64(e.N), taken(), lasted(l, e))
				f.Evidence = append(f.Evidence, complained(l, e, complaintsWith(l, e))...)
				out = append(out, f)
			}
			continue
		}
		s := &l.Set.Servers[server]
		f := finding.Finding{Subkind: HTTP, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Metric: finding.Metric{Name: "server errors", Before: math.NaN(), After: errors.n}}
		tooMany := fmt.Sprintf("%s with 429 (too many requests) %s", words.Counted(int(many.n), "request"), many.between())
		switch {
		case errors.n == 0:
			f.Since, f.Until, f.Metric.Name, f.Metric.After = many.first, many.last, "answers with 429", many.n
			f.Text = fmt.Sprintf("%s answers %s", telemetry.Host(s), tooMany)
		default:
			f.Since, f.Until = errors.first, errors.last
			f.Text = fmt.Sprintf("%s answers %s with a server error %s", telemetry.Host(s), words.Counted(int(errors.n), "request"), errors.between())
			who := "its log has"
			if errors.counter != "" {
				who = errors.counter + " counts"
			}
			f.Evidence = append(f.Evidence, finding.Sentence("%s answers with an HTTP status of 500 or more", who))
			if many.n > 0 {
				f.Text += ", and " + tooMany
				f.Since, f.Until = min(errors.first, many.first), max(errors.last, many.last)
			}
		}
		if f.Until == f.Since {
			f.Until = 0
		}
		if taken := taken(); taken > 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("servers took in %s", words.Counted(int(taken), "request")))
		}
		f.Cost = lost(l, int32(server), errors.n+many.n, taken(), float64(errors.buckets+many.buckets)/float64(max(1, l.Grid.N())))
		for _, e := range turned {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", l.Sentence(e)))
		}
		out = append(out, f)
	}
	return out
}

// abortions finds servers that aborted more requests than not, of all that they counted since they were started, even if there is one scrape.
func abortions(l *telemetry.Logged) []finding.Finding {
	out := abortedWaiting(l)
	type count struct {
		n  float64
		at trace.Time
	}
	last := func(name string) []count { // by server
		sums := make([]count, len(l.Set.Servers))
		for i := range l.Set.List {
			s := &l.Set.List[i]
			if m := l.Set.Metric(s.Metric); m.Kind != series.Counter || !strings.HasSuffix(m.Name, name) {
				continue
			}
			var x count
			for v := range l.Set.Each(i) {
				if l.Opt.Inside(v.Time) {
					x = count{v.Value, v.Time}
				}
			}
			sum := &sums[l.Set.Places[s.Place].Server]
			*sum = count{sum.n + x.n, max(sum.at, x.at)}
		}
		return sums
	}
	abortedBy, allOf := last("num_aborted_requests_total"), last("num_requests_total")
	for server := range l.Set.Servers {
		aborted, all := abortedBy[server], allOf[server]
		if 2*aborted.n <= all.n || all.n == 0 {
			continue
		}
		s := &l.Set.Servers[server]
		f := finding.Finding{Subkind: Aborted, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Severity: finding.Warning, Metric: finding.Metric{Name: "aborted requests", Before: math.NaN(), After: aborted.n}}
		f.Text = fmt.Sprintf("%s aborted %s since it was started, and counts %s in all, at %s", telemetry.Host(s), words.Counted(int(aborted.n), "request"), words.Thousands(int64(all.n)), words.TimeOfDay(aborted.at))
		f.Evidence = append(f.Evidence, finding.Sentence("a request is aborted when its client leaves before the answer, or when the server gives it up"))
		out = append(out, f)
	}
	return out
}

// abortedWaiting finds requests that were aborted while they waited for a KV cache, where nothing says that this did not arrive.
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
		f.Evidence = append([]finding.Evidence{finding.Sentence("who aborts a request is its client, or a router that gave it up: the log does not tell which")}, f.Evidence...)
		out = append(out, f)
	}
	return out
}

// refusals are, by server, that a router had no server for requests, or no place in its queue.
func refusals(l *telemetry.Logged) map[int32][]*telemetry.Event {
	of := map[int32][]*telemetry.Event{}
	for i := range l.Events {
		if e := &l.Events[i]; e.Kind == series.Refusal {
			of[e.Server] = append(of[e.Server], e)
		}
	}
	return of
}

// takenIn is how many requests servers took in, 0 if nothing tells: a request of a decode server was one of a prefill server.
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

// lost is the part of the time of all servers that n requests of one cost which failed; 0 is not known, where no line of a batch tells what
// else was done. It is at most their part of all requests, where that is known,
// and the part of the time in which there were any, of as many servers as there are.
func lost(l *telemetry.Logged, server int32, n, taken, within float64) float64 {
	if l.Grid.N() == 0 {
		return 0
	}
	if telemetry.Role(&l.Set.Servers[server]) != request.Router {
		within /= float64(serversOf(l))
	}
	if taken > 0 {
		within = min(within, n/(n+taken))
	}
	return min(1, max(least, within))
}

// least is the part of the time that a moment takes.
const least = 0.001

// share is the part of a time that one of some servers was away for a while.
func share(away, of trace.Time, servers int) float64 {
	return min(1, max(least, float64(away)/max(1, float64(of))/float64(servers)))
}

// serversOf is how many servers log batches or count what they do, at least one.
func serversOf(l *telemetry.Logged) int {
	servers := map[int32]bool{}
	for i := range l.Ranks {
		servers[l.Ranks[i].Server] = true
	}
	return max(1, len(servers))
}

// routedTo is how many servers run requests, whether or not their logs are there: a router names those that it knows.
func routedTo(l *telemetry.Logged) (n int) {
	for i := range l.Set.Servers {
		if telemetry.Role(&l.Set.Servers[i]) != request.Router {
			n++
		}
	}
	return max(1, n)
}
