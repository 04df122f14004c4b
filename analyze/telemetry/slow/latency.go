package slow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Latency is the subkind of findings that requests of a server take longer according to its histograms, and Slowed of
// those where the demand stays about the same.
const (
	Latency = "latency"
	Slowed  = "slowed"
)

// LatencySubkinds are the subkinds of findings about latencies.
var LatencySubkinds = []string{Latency, Slowed}

// A rise is a period in which a latency of a server is higher.
type rise struct {
	metric      series.MetricID
	list        []telemetry.Scraped
	about       bool
	judge.Spell // of the mean, in s
}

func (r *rise) from() trace.Time { return r.list[r.C.At].From }

// until returns when the rise is over; MaxInt64 if it is not.
func (r *rise) until() trace.Time {
	if r.C.To < len(r.list) {
		return r.list[r.C.To].From
	}
	return math.MaxInt64
}

// rose finds the periods in which the mean of a histogram is at least many times its usual value before. There may be
// several.
func rose(list []telemetry.Scraped, many float64) (out []rise) {
	const fewRequests = 20
	enough := func(from, to int) bool { return telemetry.CountOf(list[from:to]) >= fewRequests }
	values := make([]float64, len(list))
	for i := range list {
		values[i] = telemetry.MeanOf(list[i : i+1])
	}
	changes := judge.Levels(values, func(from, k, to int) bool {
		before, after := telemetry.MeanOf(list[from:k]), telemetry.MeanOf(list[k:to])
		return max(before, after) >= many*min(before, after)
	})
	if k, ok := judge.Parted(values, many); len(changes) == 0 && (ok || len(list) < judge.FewBuckets) { // neighbors resemble each other, so a test may miss it
		for i := 2; i+2 <= len(list) && len(list) < judge.FewBuckets; i++ {
			if slices.Min(values[i:]) >= many*slices.Max(values[:i]) {
				k, ok = i, true
			}
		}
		if ok {
			changes = []changepoint.Change{{At: k, To: len(list), P: math.NaN()}}
			judge.Sharpen(values, &changes[0])
		}
	}
	if len(changes) == 0 {
		changes = judge.Peaks(values, many)
	}
	for _, s := range judge.Higher(changes, many, func(times [][2]int) float64 {
		var all []telemetry.Scraped
		for _, t := range times {
			all = append(all, list[t[0]:t[1]]...)
		}
		return telemetry.MeanOf(all)
	}, enough) {
		out = append(out, rise{list: list, Spell: s})
	}
	return out
}

// byLength reports whether the lengths of answers, which differ a lot, may explain that requests took longer: the means of E2E before and
// after differ by less than several standard errors, by how much the means of single intervals scatter around these.
func (r *rise) byLength() bool {
	const errors = 5 // the place is the best of many, on the best of many servers, and few answers are very long
	if r.metric != series.E2E {
		return false
	}
	scatter, n := 0.0, 0
	add := func(list []telemetry.Scraped, mean float64) (requests float64) {
		for i := range list {
			if x := &list[i]; x.N > 0 {
				off := x.Took/x.N - mean
				scatter, n, requests = scatter+x.N*off*off, n+1, requests+x.N
			}
		}
		return requests
	}
	before, after := add(r.list[:r.C.At], r.Before), add(r.list[r.C.At:r.C.To], r.After)
	return r.After-r.Before < errors*math.Sqrt(scatter/float64(max(1, n-2))*(1/before+1/after))
}

// Latencies finds since when requests of a server take longer, from histograms of several scrapes.
func Latencies(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	const least = 0.005 // of the time of requests: a short burst costs less
	check := finding.Check{What: "latencies in metrics", Of: "interval", Needed: 4}
	var out, own []finding.Finding
	all := 0.0 // seconds of all requests
	meters := l.Meters()
	rises, alone, roles := make([][]rise, len(meters)), make([]bool, len(meters)), sumsOfRoles(l)
	for k, m := range meters {
		for _, metric := range []series.MetricID{series.TTFT, series.ITL, series.TPOT, series.E2E} {
			x := l.Scrapes(m, metric)
			list := x.List
			check.N = max(check.N, len(list))
			if metric == series.E2E {
				for i := range list {
					all += list[i].Took
				}
			}
			for _, r := range rose(list, judge.MuchMore) {
				r.metric, r.about = metric, x.About
				rises[k] = append(rises[k], r)
			}
		}
		if len(rises[k]) == 0 {
			rises[k] = roseAlone(l, m, roles)
			alone[k] = true
		}
	}
	for k, m := range meters {
		ended := trace.Time(0) // end of the previous rises
		for _, together := range spells(rises[k]) {
			if len(together) == 1 && together[0].byLength() {
				continue
			}
			x := newLengthening(l, m, together, ended)
			f := x.finding(meteredAt(l, m), all)
			switch {
			case !f.P.Known && f.Cost < least:
				continue
			case alone[k]:
				own = append(own, f)
			default:
				out = append(out, f)
			}
			ended = f.Until
		}
	}
	if check.N == 0 {
		check.Reason = "no metrics have histograms of several scrapes"
	}
	return append(judge.Alike(out), own...), check
}

// spells groups rises that overlap in time, sorted by metric. Of several rises of a metric, it keeps the longest.
func spells(rises []rise) (out [][]rise) {
	slices.SortStableFunc(rises, func(a, b rise) int { return cmp.Compare(a.from(), b.from()) })
	until := trace.Time(0)
	for _, r := range rises {
		if n := len(out) - 1; n >= 0 && r.from() <= until {
			out[n], until = append(out[n], r), max(until, r.until())
		} else {
			out, until = append(out, []rise{r}), r.until()
		}
	}
	for i, together := range out {
		slices.SortStableFunc(together, func(a, b rise) int {
			return cmp.Or(cmp.Compare(a.metric, b.metric), cmp.Compare(b.C.To-b.C.At, a.C.To-a.C.At))
		})
		out[i] = slices.CompactFunc(together, func(a, b rise) bool { return a.metric == b.metric })
	}
	return out
}

// A lengthening is a period in which latencies of a server are higher.
type lengthening struct {
	l            *telemetry.Logged
	m            telemetry.Meter
	rises        []rise     // the one that makes up most of the extra time of requests is first
	first        *rise      // another rise if it begins clearly earlier, as requests may wait because of it; else rises[0]
	ended        trace.Time // end of the previous lengthening; 0 if there is none
	since, until trace.Time
	within       trace.Time // precision of since
}

// fewIntervals is the number of scrape intervals by which a rise must precede another to be clearly earlier.
const fewIntervals = 3

// newLengthening makes a lengthening of rises, which it reorders.
func newLengthening(l *telemetry.Logged, m telemetry.Meter, rises []rise, ended trace.Time) lengthening {
	if isOfTokens(&rises[0], &rises[len(rises)-1]) {
		rises[0], rises[1] = rises[1], rises[0]
	}
	x := lengthening{l: l, m: m, rises: rises, first: &rises[0], ended: ended, until: rises[0].until()}
	for i := range rises {
		if r := &rises[i]; r.metric != series.E2E && r.from()+fewIntervals*(r.list[r.C.At].To-r.from()) <= x.first.from() {
			x.first = r
		}
	}
	lead := rises[0]
	x.since, x.within = x.first.from(), lead.list[lead.C.At].To-lead.list[lead.C.At].From
	return x
}

// isOfTokens reports whether the tokens after the first one make up most of the extra time of requests.
func isOfTokens(ttft, e2e *rise) bool {
	return ttft.metric == series.TTFT && e2e.metric == series.E2E && ttft.After-ttft.Before < (e2e.After-e2e.Before)/2 && 2*(e2e.C.To-e2e.C.At) > ttft.C.To-ttft.C.At
}

// extra returns the extra time of all affected requests, in s, including requests that begin in the period and end
// later.
func (x *lengthening) extra() float64 {
	r := &x.rises[0]
	more := (r.After - r.Before) * r.count()
	list := x.l.Scrapes(x.m, series.E2E).List
	if len(list) == 0 {
		return more
	}
	last := x.until
	for i := range x.rises {
		last = max(last, x.rises[i].until())
	}
	behind := telemetry.Within(list, x.since, last)
	if e2e := (telemetry.MeanOf(behind) - telemetry.MeanOf(telemetry.Within(list, x.ended, x.since))) * telemetry.CountOf(behind); e2e > more || r.metric != series.TTFT {
		return e2e
	}
	return more
}

// finding makes the finding of the lengthening at a place. all is the total time of requests on all servers, in s.
func (x *lengthening) finding(at place.Location, all float64) finding.Finding {
	r := &x.rises[0]
	f := finding.Finding{Subkind: Latency, At: at, Since: x.since, Within: x.within, P: finding.Chance(r.C.P),
		Metric: finding.Metric{Name: x.l.Set.Metric(r.metric).Name, Unit: table.Duration, Before: r.Before * 1e9, After: r.After * 1e9}}
	if math.IsNaN(r.C.P) {
		f.Confidence = finding.Likely
	}
	if x.until != math.MaxInt64 {
		f.Until = x.until
	}
	more := x.extra()
	if f.Cost = more / all; !(f.Cost <= 1) { // the time of all requests is unknown
		f.Cost = (1 - r.Before/r.After) * float64(r.C.To-r.C.At) / float64(len(r.list)) / float64(len(x.l.Meters()))
	}
	f.Brief = x.first.says(x.l.Set, f.At.String())
	if x.first != r {
		f.Brief += fmt.Sprintf(", and %s%s", since(r.from()), r.says(x.l.Set, ""))
	}
	f.Text = lasts(f.Since, f.Until) + f.Brief
	if text, part := mostlyIn(x.l, x.m, x.ended, x.since, x.until, more); part > 0 {
		f.Brief = fmt.Sprintf(text, f.At.String())
		f.Text = fmt.Sprintf("%s%s; %s: %s %% of the difference is that", lasts(f.Since, f.Until), f.Brief, r.says(x.l.Set, ""), words.InPercent(min(1, part)))
	}
	x.explain(&f)
	return f
}

// explain adds to a finding what other metrics of the server show in that period.
func (x *lengthening) explain(f *finding.Finding) {
	l, lead := x.l, x.rises[0].metric
	for i := range x.rises {
		r := &x.rises[i]
		if i == 0 || r == x.first {
			continue
		}
		later := ""
		if r.from() > x.since+fewIntervals*x.within {
			later = since(r.from())
		}
		f.Evidence = append(f.Evidence, finding.Sentence("%s%s", later, r.says(l.Set, "")))
	}
	if list := l.Scrapes(x.m, series.QueueTime).List; len(list) > 0 && lead != series.ITL {
		if before, after := telemetry.MeanOf(telemetry.Within(list, x.ended, x.since)), telemetry.MeanOf(telemetry.Within(list, x.since, x.until)); after > before {
			f.Evidence = append(f.Evidence, finding.Sentence("requests wait %s in the queue, %s before", seconds(after), seconds(before)))
		}
	}
	if ranks := l.RanksOf(x.m); lead == series.ITL && len(ranks) == 1 {
		f.Evidence = append(f.Evidence, asMuchBetween(l, ranks[0], f.Since, f.Until)...)
	}
	for _, q := range longerQueues(l, x.m.Server, x.ended, x.since, x.until) {
		f.Text += "; " + q
		f.Evidence = append(f.Evidence, finding.Sentence("%s", q))
	}
	beside, asked, same := goesWith(l, x.m, x.ended, x.since, x.until)
	f.Evidence = append(f.Evidence, beside...)
	if asked != "" {
		f.Text += "; " + asked
	}
	if same {
		f.Subkind = Slowed
	}
}

// mostlyIn finds the part of requests that most of more, their extra seconds since a time, is spent in, if any. text
// is the sentence about it, with %s for the server, and part its share of more.
func mostlyIn(l *telemetry.Logged, m telemetry.Meter, from, since, until trace.Time, more float64) (text string, part float64) {
	const most, all = 0.5, 1.2 // most and all bound part, which may exceed 1, as each rank may count what all do together
	for _, p := range l.Parts(m) {
		behind := telemetry.Within(p.List, since, until)
		before, after := telemetry.MeanOf(telemetry.Within(p.List, from, since)), telemetry.MeanOf(behind)
		if x := (after - before) * telemetry.CountOf(behind) / more; x >= most && x <= all && x > part {
			part, text = x, fmt.Sprintf("%s takes %s%s on average on %%s, %s before", p.Name, about(p.About), seconds(after), seconds(before))
		}
	}
	return text, part
}

// longerQueues finds queues with producer-specific names that are much longer from some time on: requests wait in
// these, too.
func longerQueues(l *telemetry.Logged, server int32, from, at, until trace.Time) (list []string) {
	for i := range l.Set.List {
		s := &l.Set.List[i]
		m := l.Set.Metric(s.Metric)
		if s.Metric < series.KnownMetrics || m.Kind != series.Gauge || !strings.Contains(m.Name, "queue_req") || l.Set.Places[s.Place].Server != server {
			continue
		}
		var before, after []float64
		for x := range l.Set.Each(i) {
			switch {
			case x.Time < from || x.Time >= until || !l.Opt.Inside(x.Time):
			case x.Time < at:
				before = append(before, x.Value)
			default:
				after = append(after, x.Value)
			}
		}
		if x, y := judge.Mean(before), judge.Mean(after); isMuchLonger(x, y) {
			list = append(list, fmt.Sprintf("%s is %s on average, %s before", m.Name, words.ThreeDigits(y), words.ThreeDigits(x)))
		}
	}
	return list
}

// meteredAt returns the location of a meter: that of its only rank, or else that of its server.
func meteredAt(l *telemetry.Logged, m telemetry.Meter) place.Location {
	if m.Place != telemetry.Whole {
		return l.Where(m.Place)
	}
	if ranks := l.RanksOf(m); len(ranks) == 1 {
		return ranks[0].Where
	}
	s := &l.Set.Servers[m.Server]
	return place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names)
}

// count returns the number of observations during a rise.
func (r *rise) count() float64 { return telemetry.CountOf(r.list[r.C.At:r.C.To]) }

// seconds prints a duration given in s.
func seconds(s float64) string { return words.Nearly(int64(s * 1e9)) }

// says returns a sentence about a rise; at may be "" if the place is clear.
func (r *rise) says(set *series.Set, at string) string {
	if at != "" {
		at = " on " + at
	}
	return fmt.Sprintf("%s is %s%s on average%s, %s before", set.Metric(r.metric).Name, about(r.about), seconds(r.After), at, seconds(r.Before))
}

// about marks a mean that is estimated from buckets.
func about(it bool) string {
	if it {
		return "about "
	}
	return ""
}

// goesWith says how other metrics of a meter changed at a time, between from and until, and whether the demand grew.
// same reports that it stayed about the same, which is known only if requests are counted.
func goesWith(l *telemetry.Logged, m telemetry.Meter, from, at, until trace.Time) (list []finding.Evidence, asked string, same bool) {
	if l.Grid.N() == 0 {
		return nil, "", false // a frontend has histograms, but no batches
	}
	ranks := l.RanksOf(m)
	first, k, end := max(0, l.Grid.Of(from)), l.Grid.Of(at), l.Grid.N()
	if until < l.Grid.Start(end) {
		end = l.Grid.Of(until)
	}
	if k <= first || k >= end {
		return nil, "", false
	}
	queued := 0.0 // growth of the queue until the end
	for _, level := range []series.MetricID{series.Queued, series.Running, series.KVUsage} {
		curve := added(l, ranks, level)
		if curve == nil || level == series.KVUsage && len(ranks) > 1 {
			continue
		}
		if level == series.Queued {
			queued = curve[end-1] - curve[k-1]
		}
		of := l.Set.Metric(level)
		list = append(list, finding.Sentence("%s: %s on average, %s before", strings.TrimSpace(of.Name+" "+of.Unit), words.ThreeDigits(judge.Mean(curve[k:end])), words.ThreeDigits(judge.Mean(curve[first:k]))))
	}
	rate := func(of []float64, more float64) (before, after float64) {
		s, last := float64(l.Grid.Bucket)/1e9, max(k+1, min(end, len(of)-1)) // nothing is known after the last scrape
		return judge.Mean(of[first:k]) / s, judge.Mean(of[k:last])/s + more/s/float64(last-k)
	}
	came := l.ByBucket(l.Scrapes(m, series.TTFT).List)
	prompts := l.Counted(m, "prompt_tokens_total")
	if came == nil || prompts == nil {
		return list, "", false
	}
	if aborted := l.Aborted(m); aborted != nil { // most aborted requests have no first token
		if x, y := rate(aborted, 0); y > judge.MuchMore*x {
			list = append([]finding.Evidence{finding.Sentence("%s requests a second are aborted, %s before", words.ThreeDigits(y), words.ThreeDigits(x))}, list...)
			for b, n := range aborted {
				came[b] += n
			}
		}
	}
	before, after := rate(came, queued)
	tokensBefore, tokens := rate(prompts, 0)
	if tokensBefore > 0 {
		list = append(list, finding.Sentence("%s tokens of prompts a second, %s before", words.ThreeDigits(tokens), words.ThreeDigits(tokensBefore)))
	}
	switch {
	case after >= judge.MuchLonger*before:
		return list, fmt.Sprintf("more requests come: %s a second, %s before", words.ThreeDigits(after), words.ThreeDigits(before)), false
	case tokensBefore > 0 && tokens >= judge.MuchLonger*tokensBefore:
		return list, fmt.Sprintf("prompts have more tokens: %s a second, %s before", words.ThreeDigits(tokens), words.ThreeDigits(tokensBefore)), false
	}
	return list, fmt.Sprintf("about as many requests come as before: %s a second, %s before", words.ThreeDigits(after), words.ThreeDigits(before)), true
}
