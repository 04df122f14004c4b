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

// Latency is the subkind of findings that requests of a server take longer, as its histograms have it, and Slowed of those where
// about as much is asked of it as before.
const (
	Latency = "latency"
	Slowed  = "slowed"
)

// LatencySubkinds are both.
var LatencySubkinds = []string{Latency, Slowed}

// A rise is from when to when requests of a server take longer.
type rise struct {
	metric      series.MetricID
	list        []telemetry.Scraped
	about       bool
	judge.Spell // of its mean, in s
}

func (r *rise) from() trace.Time { return r.list[r.C.At].From }

// until is when it is over, MaxInt64 where it is not.
func (r *rise) until() trace.Time {
	if r.C.To < len(r.list) {
		return r.list[r.C.To].From
	}
	return math.MaxInt64
}

// rose finds from when to when the mean of a histogram is so many times what it usually was before. It may end, and rise again.
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
	if k, ok := judge.Parted(values, many); len(changes) == 0 && (ok || len(list) < judge.FewBuckets) { // neighbors resemble each other
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

// Latencies finds since when requests of a server take longer, by histograms of several scrapes.
func Latencies(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	const least = 0.005 // of the time of requests: a few that came together cost less
	check := finding.Check{What: "latencies in metrics", Of: "interval", Needed: 4}
	var out, own []finding.Finding
	all := 0.0                                                                         // seconds of all requests
	rises, at := make([][]rise, len(l.Set.Servers)), make([]int32, len(l.Set.Servers)) // by server
	alone, roles := make([]bool, len(l.Set.Servers)), sumsOfRoles(l)
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
			for _, r := range rose(list, judge.MuchMore) {
				r.metric, r.about = metric, x.About
				at[server], rises[server] = x.Place, append(rises[server], r)
			}
		}
		if len(rises[server]) == 0 {
			at[server], rises[server] = roseAlone(l, int32(server), roles)
			alone[server] = true
		}
	}
	for server := range rises {
		ended := trace.Time(0) // the rises before
		for _, together := range spells(rises[server]) {
			f := latency(l, int32(server), at[server], together, all, ended)
			switch {
			case !f.P.Known && f.Cost < least:
				continue
			case alone[server]:
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

// spells puts rises together that meet in time, in the order of their metrics: of one metric that which lasts longest.
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

// latency says which latencies of a server rose, first the one that makes up most of what a request takes longer. Others rose until ended.
func latency(l *telemetry.Logged, server, at int32, rises []rise, all float64, ended trace.Time) finding.Finding {
	const few = 3 // intervals
	lead := 0
	if last := &rises[len(rises)-1]; last.metric == series.E2E && len(rises) > 1 && rises[0].metric == series.TTFT && rises[0].After-rises[0].Before < (last.After-last.Before)/2 && 2*(last.C.To-last.C.At) > rises[0].C.To-rises[0].C.At {
		lead = 1 // it is the tokens behind the first one
	}
	rises[0], rises[lead] = rises[lead], rises[0]
	r, first := &rises[0], &rises[0] // requests wait for what was slow before
	for i := range rises {
		if x := &rises[i]; x.metric != series.E2E && x.from()+few*(x.list[x.C.At].To-x.from()) <= first.from() {
			first = x
		}
	}
	c := r.C
	f := finding.Finding{Subkind: Latency, At: placeOf(l, server, at), Since: first.from(), Within: r.list[c.At].To - r.list[c.At].From, P: finding.Chance(c.P),
		Metric: finding.Metric{Name: l.Set.Metric(r.metric).Name, Unit: table.Duration, Before: r.Before * 1e9, After: r.After * 1e9}}
	if math.IsNaN(c.P) {
		f.Confidence = finding.Likely
	}
	until := r.until()
	if until != math.MaxInt64 {
		f.Until = until
	}
	more := (r.After - r.Before) * r.count()
	if list := l.Scrapes(server, series.E2E).List; len(list) > 0 { // with all that begins later, and ends
		last := until
		for i := range rises {
			last = max(last, rises[i].until())
		}
		behind := telemetry.Within(list, f.Since, last)
		if x := (telemetry.MeanOf(behind) - telemetry.MeanOf(telemetry.Within(list, ended, f.Since))) * telemetry.CountOf(behind); x > more || r.metric != series.TTFT {
			more = x
		}
	}
	if f.Cost = more / all; !(f.Cost <= 1) { // nobody knows how long all took
		f.Cost = (1 - r.Before/r.After) * float64(c.To-c.At) / float64(len(r.list)) / float64(len(l.Set.Servers))
	}
	f.Brief = first.says(l.Set, f.At.String())
	if first != r {
		f.Brief += fmt.Sprintf(", and %s%s", since(r.from()), r.says(l.Set, ""))
	}
	f.Text = lasts(f.Since, f.Until) + f.Brief
	for i := range rises {
		if &rises[i] == r || &rises[i] == first {
			continue
		}
		later := ""
		if rises[i].from() > f.Since+few*f.Within {
			later = since(rises[i].from())
		}
		f.Evidence = append(f.Evidence, finding.Sentence("%s%s", later, rises[i].says(l.Set, "")))
	}
	if text, part := mostlyIn(l, server, ended, f.Since, until, more); part > 0 {
		f.Brief = fmt.Sprintf(text, f.At.String())
		f.Text = fmt.Sprintf("%s%s; %s: %s %% of the difference is that", lasts(f.Since, f.Until), f.Brief, r.says(l.Set, ""), words.InPercent(min(1, part)))
	}
	if list := l.Scrapes(server, series.QueueTime).List; len(list) > 0 && r.metric != series.ITL {
		if before, after := telemetry.MeanOf(telemetry.Within(list, ended, f.Since)), telemetry.MeanOf(telemetry.Within(list, f.Since, until)); after > before {
			f.Evidence = append(f.Evidence, finding.Sentence("requests wait %s in the queue, %s before", seconds(after), seconds(before)))
		}
	}
	for i := range l.Ranks {
		if x := &l.Ranks[i]; x.Server == server && r.metric == series.ITL && l.IsAlone(x) {
			f.Evidence = append(f.Evidence, asMuchBetween(l, x, f.Since, f.Until)...)
		}
	}
	queues := longerQueues(l, server, ended, f.Since, until)
	for _, q := range queues {
		f.Text += "; " + q
		f.Evidence = append(f.Evidence, finding.Sentence("%s", q))
	}
	beside, asked, same := goesWith(l, server, ended, f.Since, until)
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
func mostlyIn(l *telemetry.Logged, server int32, from, since, until trace.Time, more float64) (text string, part float64) {
	const most, all = 0.5, 1.2 // of them; each rank may count what all do together
	for _, p := range l.Parts(server) {
		behind := telemetry.Within(p.List, since, until)
		before, after := telemetry.MeanOf(telemetry.Within(p.List, from, since)), telemetry.MeanOf(behind)
		if x := (after - before) * telemetry.CountOf(behind) / more; x >= most && x <= all && x > part {
			part, text = x, fmt.Sprintf("%s takes %s%s on average on %%s, %s before", p.Name, about(p.About), seconds(after), seconds(before))
		}
	}
	return text, part
}

// longerQueues tells of queues of a server that only its producer knows, and that are much longer from some time on: requests wait in
// them, too.
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
func (r *rise) count() float64 { return telemetry.CountOf(r.list[r.C.At:r.C.To]) }

// seconds says a duration that is in s.
func seconds(s float64) string { return words.Nearly(int64(s * 1e9)) }

// says is a sentence about a rise; at "" is known.
func (r *rise) says(set *series.Set, at string) string {
	if at != "" {
		at = " on " + at
	}
	return fmt.Sprintf("%s is %s%s on average%s, %s before", set.Metric(r.metric).Name, about(r.about), seconds(r.After), at, seconds(r.Before))
}

// about says that a mean is out of buckets.
func about(it bool) string {
	if it {
		return "about "
	}
	return ""
}

// goesWith says what else a server's metrics say from a time on before and behind another one, and whether more is asked of it, or about
// the same: that is known if they count requests.
func goesWith(l *telemetry.Logged, server int32, from, at, until trace.Time) (list []finding.Evidence, asked string, same bool) {
	if l.Grid.N() == 0 {
		return nil, "", false // of a frontend there are histograms, and nothing of batches
	}
	var ranks []*telemetry.Rank
	for i := range l.Ranks {
		if l.Ranks[i].Server == server {
			ranks = append(ranks, &l.Ranks[i])
		}
	}
	first, k, end := max(0, l.Grid.Of(from)), l.Grid.Of(at), l.Grid.N()
	if until < l.Grid.Start(end) {
		end = l.Grid.Of(until)
	}
	if k <= first || k >= end {
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
		list = append(list, finding.Sentence("%s: %s on average, %s before", strings.TrimSpace(of.Name+" "+of.Unit), words.ThreeDigits(judge.Mean(curve[k:end])), words.ThreeDigits(judge.Mean(curve[first:k]))))
	}
	rate := func(of []float64, more float64) (before, after float64) {
		s, last := float64(l.Grid.Bucket)/1e9, max(k+1, min(end, len(of)-1)) // nothing is known behind the last scrape
		return judge.Mean(of[first:k]) / s, judge.Mean(of[k:last])/s + more/s/float64(last-k)
	}
	came := l.ByBucket(l.Scrapes(server, series.TTFT).List)
	prompts := l.Counted(server, "prompt_tokens_total")
	if came == nil || prompts == nil {
		return list, "", false
	}
	if aborted := l.Aborted(server); aborted != nil { // most of what nobody waits for any more has no first token
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
