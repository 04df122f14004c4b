package slow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Latency is the subkind of findings that requests of a server take longer, as its histograms have it, and Slowed of those where
// about as much is asked of it as before.
const (
	Latency = "latency"
	Slowed  = "slowed"
)

// LatencySubkinds are both.
var LatencySubkinds = []string{Latency, Slowed}

// A rise is since when requests of a server take longer.
type rise struct {
	metric        series.MetricID
	list          []telemetry.Scraped
	about         bool
	c             changepoint.Change
	before, after float64 // means, in s
}

// rose finds since when the mean of a histogram is much higher than before.
func rose(list []telemetry.Scraped) (c changepoint.Change, ok bool) {
	const fewRequests = 20
	enough := func(from, to int) bool { return telemetry.CountOf(list[from:to]) >= fewRequests }
	higher := func(from, k, to int) bool {
		return telemetry.MeanOf(list[k:to]) >= muchMore*telemetry.MeanOf(list[from:k]) && enough(from, k) && enough(k, to)
	}
	values := make([]float64, len(list))
	for i := range list {
		values[i] = telemetry.MeanOf(list[i : i+1])
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		before, after := telemetry.MeanOf(list[from:k]), telemetry.MeanOf(list[k:to])
		return max(before, after) >= muchMore*min(before, after)
	}})
	for _, c := range changes {
		if higher(c.From, c.At, c.To) && higher(0, c.At, c.To) {
			return c, true
		}
	}
	if len(changes) > 0 {
		return c, false
	}
	k, ok := parted(values, muchMore) // neighbors resemble each other
	for i := 2; i+2 <= len(list) && len(list) < fewBuckets; i++ {
		if slices.Min(values[i:]) >= muchMore*slices.Max(values[:i]) {
			k, ok = i, true
		}
	}
	return changepoint.Change{At: k, To: len(list), P: math.NaN()}, ok && higher(0, k, len(list))
}

// Latencies finds since when requests of a server take longer, by histograms of several scrapes.
func Latencies(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "latencies in metrics", Of: "interval", Needed: 4}
	var out []finding.Finding
	all := 0.0                                                                         // seconds of all requests
	rises, at := make([][]rise, len(l.Set.Servers)), make([]int32, len(l.Set.Servers)) // by server
	for server := range rises {
		for _, metric := range []series.MetricID{series.TTFT, series.ITL, series.TPOT, series.E2E} {
			x := l.Scrapes(int32(server), metric)
			list := x.List
			check.N = max(check.N, len(list))
			if metric == series.E2E {
				for i := range list {
					all += list[i].Took
				}
			}
			if c, ok := rose(list); ok {
				at[server], rises[server] = x.Place, append(rises[server], rise{metric, list, x.About, c, telemetry.MeanOf(list[:c.At]), telemetry.MeanOf(list[c.At:c.To])})
			}
		}
	}
	for server := range rises {
		if len(rises[server]) > 0 {
			out = append(out, latency(l, int32(server), at[server], rises[server], all))
		}
	}
	if check.N == 0 {
		check.Reason = "no metrics have histograms of several scrapes"
	}
	return alike(out), check
}

// latency says which latencies of a server rose, first the one that makes up most of what a request takes longer.
func latency(l *telemetry.Logged, server, at int32, rises []rise, all float64) finding.Finding {
	lead := 0
	if last := &rises[len(rises)-1]; last.metric == series.E2E && len(rises) > 1 && rises[0].metric == series.TTFT && rises[0].after-rises[0].before < (last.after-last.before)/2 {
		lead = 1 // it is the tokens behind the first one
	}
	rises[0], rises[lead] = rises[lead], rises[0]
	r := &rises[0]
	c := r.c
	f := finding.Finding{Subkind: Latency, At: placeOf(l, server, at), Since: r.list[c.At].From, Within: r.list[c.At].To - r.list[c.At].From, P: finding.Chance(c.P),
		Metric: finding.Metric{Name: l.Set.Metric(r.metric).Name, Unit: table.Duration, Before: r.before * 1e9, After: r.after * 1e9}}
	if math.IsNaN(c.P) {
		f.Confidence = finding.Likely
	}
	until := trace.Time(math.MaxInt64)
	if c.To < len(r.list) {
		f.Until = r.list[c.To].From
		until = f.Until
	}
	more := (r.after - r.before) * r.count()
	if last := &rises[len(rises)-1]; last.metric == series.E2E {
		more = (last.after - last.before) * last.count()
	}
	if f.Cost = more / all; !(f.Cost <= 1) { // nobody knows how long all took
		f.Cost = (1 - r.before/r.after) * float64(c.To-c.At) / float64(len(r.list)) / float64(len(l.Set.Servers))
	}
	f.Brief = r.says(l.Set, f.At.String())
	f.Text = since(f.Since) + f.Brief
	for i := 1; i < len(rises); i++ {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", rises[i].says(l.Set, "")))
	}
	if text, part := mostlyIn(l, server, f.Since, until, more); part > 0 {
		f.Brief = fmt.Sprintf(text, f.At.String())
		f.Text = fmt.Sprintf("%s%s; %s: %s %% of the difference is that", since(f.Since), f.Brief, r.says(l.Set, ""), words.InPercent(min(1, part)))
	}
	if list := l.Scrapes(server, series.QueueTime).List; len(list) > 0 && r.metric != series.ITL {
		if before, after := telemetry.MeanOf(telemetry.Within(list, 0, f.Since)), telemetry.MeanOf(telemetry.Within(list, f.Since, until)); after > before {
			f.Evidence = append(f.Evidence, finding.Sentence("requests wait %s in the queue, %s before", seconds(after), seconds(before)))
		}
	}
	for i := range l.Ranks {
		if x := &l.Ranks[i]; x.Server == server && r.metric == series.ITL && isAlone(l, x) {
			f.Evidence = append(f.Evidence, asMuchBetween(l, x, f.Since, f.Until)...)
		}
	}
	beside, asked, same := goesWith(l, server, f.Since, until)
	f.Evidence = append(f.Evidence, beside...)
	if asked != "" {
		f.Text += "; " + asked
	}
	if same {
		f.Subkind = Slowed
	}
	return f
}

// mostlyIn finds the part of requests that most of some seconds are of that they take more since a time, if any: what to
// say of it, with %s for the server, and how much of them that is.
func mostlyIn(l *telemetry.Logged, server int32, since, until trace.Time, more float64) (text string, part float64) {
	const most, all = 0.5, 1.2 // of them; each rank may count what all do together
	for _, p := range l.Parts(server) {
		behind := telemetry.Within(p.List, since, until)
		before, after := telemetry.MeanOf(telemetry.Within(p.List, 0, since)), telemetry.MeanOf(behind)
		if x := (after - before) * telemetry.CountOf(behind) / more; x >= most && x <= all && x > part {
			part, text = x, fmt.Sprintf("%s takes %s%s on average on %%s, %s before", p.Name, about(p.About), seconds(after), seconds(before))
		}
	}
	return text, part
}

// placeOf is that of a server: of the only rank that it tells of, else that of its histograms.
func placeOf(l *telemetry.Logged, server, histogram int32) place.Location {
	at, n := l.Where(histogram), 0
	for i := range l.Ranks {
		if l.Ranks[i].Server == server {
			at, n = l.Ranks[i].Where, n+1
		}
	}
	if n != 1 {
		return l.Where(histogram)
	}
	return at
}

// count is how many observations there were since a rise.
func (r *rise) count() float64 { return telemetry.CountOf(r.list[r.c.At:r.c.To]) }

// seconds says a duration that is in s.
func seconds(s float64) string { return words.Nearly(int64(s * 1e9)) }

// says is a sentence about a rise; at "" is known.
func (r *rise) says(set *series.Set, at string) string {
	if at != "" {
		at = " on " + at
	}
	return fmt.Sprintf("%s is %s%s on average%s, %s before", set.Metric(r.metric).Name, about(r.about), seconds(r.after), at, seconds(r.before))
}

// about says that a mean is out of buckets.
func about(it bool) string {
	if it {
		return "about "
	}
	return ""
}

// goesWith says what else a server's metrics say before and behind a time, and whether more is asked of it, or about
// the same: that is known if they count requests.
func goesWith(l *telemetry.Logged, server int32, at, until trace.Time) (list []finding.Evidence, asked string, same bool) {
	var ranks []*telemetry.Rank
	for i := range l.Ranks {
		if l.Ranks[i].Server == server {
			ranks = append(ranks, &l.Ranks[i])
		}
	}
	k, end := l.Grid.Of(at), l.Grid.N()
	if until < l.Grid.Start(end) {
		end = l.Grid.Of(until)
	}
	if k <= 0 || k >= end {
		return nil, "", false
	}
	queued := 0.0 // more than before, at the end
	for _, m := range []series.MetricID{series.Queued, series.Running, series.KVUsage} {
		curve := added(l, ranks, m)
		if curve == nil || m == series.KVUsage && len(ranks) > 1 {
			continue
		}
		if m == series.Queued {
			queued = curve[end-1] - curve[k-1]
		}
		of := l.Set.Metric(m)
		list = append(list, finding.Sentence("%s: %s on average, %s before", strings.TrimSpace(of.Name+" "+of.Unit), words.ThreeDigits(mean(curve[k:end])), words.ThreeDigits(mean(curve[:k]))))
	}
	rate := func(of []float64, more float64) (before, after float64) {
		s, last := float64(l.Grid.Bucket)/1e9, max(k+1, min(end, len(of)-1)) // nothing is known behind the last scrape
		return mean(of[:k]) / s, mean(of[k:last])/s + more/s/float64(last-k)
	}
	came := l.ByBucket(l.Scrapes(server, series.TTFT).List)
	prompts := l.Counted(server, "prompt_tokens_total")
	if came == nil || prompts == nil {
		return list, "", false
	}
	before, after := rate(came, queued)
	tokensBefore, tokens := rate(prompts, 0)
	list = append(list, finding.Sentence("%s tokens of prompts a second, %s before", words.ThreeDigits(tokens), words.ThreeDigits(tokensBefore)))
	switch {
	case after >= muchLonger*before:
		return list, fmt.Sprintf("more requests come: %s a second, %s before", words.ThreeDigits(after), words.ThreeDigits(before)), false
	case tokens >= muchLonger*tokensBefore:
		return list, fmt.Sprintf("prompts have more tokens: %s a second, %s before", words.ThreeDigits(tokens), words.ThreeDigits(tokensBefore)), false
	}
	return list, fmt.Sprintf("about as many requests come as before: %s a second, %s before", words.ThreeDigits(after), words.ThreeDigits(before)), true
}
