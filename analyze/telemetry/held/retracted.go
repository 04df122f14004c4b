package held

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// ThrownOut are the counters of retracted requests, without the prefix of the engine.
var ThrownOut = []string{"num_preemptions_total", "num_retracted_requests_total"}

// Retracted is the metric of findings of retractions.
const Retracted = "retracted requests"

// Retractions finds servers that throw requests out of a full KV cache.
func Retractions(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := l.JudgedLogs("logged retractions")
	var out []finding.Finding
	for i := range l.Set.Servers {
		n, first, last, places, during := retractedBy(l, int32(i))
		if n == 0 {
			f, counted, ok := retractionsCounted(l, int32(i))
			if ok {
				if part := partOfServer(l, int32(i)); part > 0 {
					f.Cost *= part
				}
				out = append(out, f)
			}
			if counted && check.Reason != "" {
				check = finding.Check{What: check.What, Of: "server", N: 1, Needed: 1}
			}
			continue
		}
		s := &l.Set.Servers[i]
		f := finding.Finding{At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Since: first, Until: last, Metric: finding.Metric{Name: Retracted, Before: math.NaN(), After: float64(n)},
			Brief: "requests are retracted from full KV caches"}
		who := telemetry.Host(s)
		if len(places) == 1 {
			for p := range places {
				f.At = l.Where(p)
				who = f.At.String()
			}
		}
		from, to := words.TimeOfDay(first), words.TimeOfDay(last)
		f.Text = fmt.Sprintf("%s retracts %s between %s and %s: its KV cache is full", who, words.Counted(n, "request"), from, to)
		if n == 1 || first == last {
			f.Text = fmt.Sprintf("%s retracts %s at %s: its KV cache is full", who, words.Counted(n, "request"), from)
		}
		f.Cost = max(0.001, min(1, float64(last-first)/max(1, float64(l.To-l.From)), float64(during)/float64(max(1, l.Grid.N()))))
		again := finding.Sentence("retracted requests are computed again")
		if each, part, ok := computedAgain(l, int32(i), n); ok {
			again = finding.Sentence("retracted requests are computed again: about %s tokens each, at most %s %% of all prompt tokens computed", words.Thousands(int64(each)), words.InPercent(part))
			f.Cost = max(0.001, min(f.Cost, part))
		}
		f.Evidence = append(f.Evidence, again)
		if slow, ok := slowBehind(l, places, first); ok {
			f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("a token takes %s before the first one, and %s from then until %s", words.Nearly(int64(slow.before*1e9)), words.Nearly(int64(slow.after*1e9)), words.TimeOfDay(slow.until)))
			f.Cost = max(f.Cost, float64(slow.until-first)/float64(l.To-l.From)*(1-slow.before/slow.after))
		}
		f.Cost *= partOfServer(l, int32(i)) // without ranks, nothing shows the cost
		out = append(out, f)
	}
	return judge.Alike(out), check
}

// retractedBy sums up the retractions in the log of a server: the number of requests, the first and last time,
// requests by place, and the number of buckets with retractions.
func retractedBy(l *telemetry.Logged, server int32) (n int, first, last trace.Time, places map[int32]int, buckets int) {
	places, during := map[int32]int{}, map[int]bool{}
	for k := range l.Set.Instants {
		x := &l.Set.Instants[k]
		if p := &l.Set.Places[x.Place]; x.Kind != series.Retraction || p.Server != server || x.Time == 0 {
			continue
		}
		first = cmp.Or(first, x.Time)
		n, last = n+int(x.Count), x.Time
		places[x.Place] += int(x.Count)
		during[l.Grid.Of(x.Time)] = true
	}
	return n, first, last, places, len(during)
}

// partOfServer returns the share of requests that a server serves; 0 without ranks.
func partOfServer(l *telemetry.Logged, server int32) (sum float64) {
	for i := range l.Ranks {
		if r := &l.Ranks[i]; r.Server == server {
			sum += judge.Part(l, r)
		}
	}
	return sum
}

// retractionsCounted finds retractions in the metrics of a server without log lines about them. counted reports
// whether its metrics count retractions.
func retractionsCounted(l *telemetry.Logged, server int32) (f finding.Finding, counted, ok bool) {
	for _, name := range ThrownOut {
		n, took := 0.0, trace.Time(0)
		var in []telemetry.Scraped
		all := l.Intervals(telemetry.WholeOf(server), name)
		for _, x := range all {
			if counted = true; x.N > 0 {
				in, n, took = append(in, x), n+x.N, took+x.To-x.From
			}
		}
		if len(in) == 0 {
			continue
		}
		s := &l.Set.Servers[server]
		f = finding.Finding{At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Since: in[0].From, Until: in[len(in)-1].To, Metric: finding.Metric{Name: Retracted, Before: math.NaN(), After: n},
			Brief: "requests are retracted from full KV caches", Cost: min(1, max(0.001, float64(took)/float64(max(1, l.To-l.From))))}
		who := telemetry.Host(s)
		for i := range l.Ranks {
			if r := &l.Ranks[i]; r.Server == server && l.IsAlone(r) {
				f.At, who = r.Where, r.Where.String()
			}
		}
		f.Text = fmt.Sprintf("%s retracts %s between %s and %s, by its own count: its KV cache is full", who, words.Counted(int(n), "request"), words.TimeOfDay(f.Since), words.TimeOfDay(f.Until))
		f.Evidence = append(f.Evidence, finding.Sentence("in %s between scrapes, %s in total; retracted requests are computed again", words.Counted(len(in), "interval"), words.Nearly(int64(took))))
		if answered := telemetry.CountOf(l.Scrapes(telemetry.WholeOf(server), series.TTFT).List); answered > 0 { // each time, one request is computed again
			f.Cost = max(0.001, min(f.Cost, n/answered))
		}
		if len(all) < judge.FewBuckets { // too few scrapes to know for what part of the time it retracted
			f.Cost = 0
		}
		return f, true, true
	}
	if counted {
		return f, true, false
	}
	return retractionsHeld(l, server)
}

// retractionsHeld finds retracted requests in the gauge of a server that counts none: how many there are at each scrape.
func retractionsHeld(l *telemetry.Logged, server int32) (f finding.Finding, counted, ok bool) {
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if r.Server != server || !r.Scraped {
			continue
		}
		n, all, most := 0, 0, 0.0
		var first, last, took trace.Time
		for _, k := range l.SeriesOf(r.Place) {
			if l.Set.List[k].Metric != series.RetractedQueue {
				continue
			}
			before := trace.Time(0)
			for x := range l.Set.Each(k) {
				if !l.Opt.Inside(x.Time) {
					continue
				}
				if all++; x.Value >= 1 {
					n, most, first, last = n+1, max(most, x.Value), cmp.Or(first, x.Time), x.Time
					if before != 0 {
						took += x.Time - before
					}
				}
				before = x.Time
			}
		}
		if counted = counted || all > 0; n == 0 || ok && f.Metric.After >= most {
			continue
		}
		ok = true
		f = finding.Finding{At: r.Where, Since: first, Until: last, Metric: finding.Metric{Name: Retracted, Before: math.NaN(), After: most},
			Brief: "requests are retracted from full KV caches", Cost: min(1, max(0.001, float64(took)/float64(max(1, l.To-l.From))))}
		f.Text = fmt.Sprintf("%s has up to %s, between %s and %s: its KV cache is full", r.Where.String(), words.Counted(int(most), "retracted request"), words.TimeOfDay(first), words.TimeOfDay(last))
		if first == last {
			f.Text = fmt.Sprintf("%s has %s at %s: its KV cache is full", r.Where.String(), words.Counted(int(most), "retracted request"), words.TimeOfDay(first))
		}
		f.Evidence = append(f.Evidence, finding.Sentence("in %d of %s; retracted requests are computed again", n, words.Counted(all, "scrape")))
		if all < judge.FewBuckets { // too few scrapes to know for what part of the time
			f.Cost = 0
		}
	}
	return f, counted, ok
}

// computedAgain estimates the tokens that each of n retracted requests had, from the mean batch, and what share that
// is of all prompt tokens that the server computed.
func computedAgain(l *telemetry.Logged, server int32, n int) (each, part float64, ok bool) {
	kv, running, computed := 0.0, 0.0, 0.0
	for k := range l.Ranks {
		if r := &l.Ranks[k]; r.Server == server {
			kv, running = kv+telemetry.Zero(r.Mean(series.KVTokens)), running+telemetry.Zero(r.Mean(series.Running))
			computed += telemetry.Zero(r.Total(series.NewTokens))
		}
	}
	each = kv / running
	return each, min(1, float64(n)*each/computed), kv > 0 && running > 0 && computed > 0
}

// A slowdown is the time per token of a request before and after a time, in s, and until when it was slower.
type slowdown struct {
	before, after float64
	until         trace.Time
}

// slowBehind reports whether tokens on some places take much longer after a time than before it, from the lines of
// batches.
func slowBehind(l *telemetry.Logged, places map[int32]int, at trace.Time) (s slowdown, ok bool) {
	const (
		few, most = 3, 20
		alike     = 1.5 // largest ratio of two values that suffice
	)
	type line struct {
		at    trace.Time
		token float64
	}
	var lines []line
	for place := range places {
		var x telemetry.LoggedLine
		for all := l.LinesOf(place); all.Next(&x); {
			if rate, running := x.Values[telemetry.RateOf], x.Values[telemetry.RunningOf]; rate > 0 && running >= 1 {
				lines = append(lines, line{x.At, running / rate})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	k, _ := slices.BinarySearchFunc(lines, at+1, func(x line, at trace.Time) int { return cmp.Compare(x.at, at) })
	tokens := func(list []line) (out []float64) {
		for _, x := range list {
			out = append(out, x.token)
		}
		return out
	}
	before := tokens(lines[max(0, k-most):k])
	enough := k >= few || k == few-1 && slices.Max(before) <= alike*slices.Min(before)
	s.before = telemetry.Middle(before)
	end := k
	for end < len(lines) && lines[end].token >= judge.MuchSlower*s.before {
		end++
	}
	if !enough || end-k < few {
		return s, false
	}
	s.after, s.until = telemetry.Middle(tokens(lines[k:end])), lines[end-1].at
	return s, true
}
