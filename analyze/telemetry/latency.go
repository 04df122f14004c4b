package telemetry

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
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

// Latencies are both.
var Latencies = []string{Latency, Slowed}

// secondsOf are how names of counters end that have the seconds of all observations of a histogram.
var secondsOf = map[series.MetricID]string{
	series.TTFT: "time_to_first_token_seconds_sum", series.ITL: "inter_token_latency_seconds_sum", series.TPOT: "time_per_output_token_seconds_sum",
	series.E2E: "e2e_request_latency_seconds_sum", series.QueueTime: "queue_time_seconds_sum",
}

// counts are the histograms and the counters of a server.
type counts struct {
	histograms []series.Histogram
	counters   []int // indexes into Set.List
}

// countsOf returns those of each server.
func countsOf(set *series.Set) []counts {
	of := make([]counts, len(set.Servers))
	for _, h := range set.Histograms() {
		c := &of[set.Places[h.Place].Server]
		c.histograms = append(c.histograms, h)
	}
	for i := range set.List {
		if x := &set.List[i]; set.Metric(x.Metric).Kind == series.Counter {
			c := &of[set.Places[x.Place].Server]
			c.counters = append(c.counters, i)
		}
	}
	return of
}

// A scraped is what came between two scrapes: n observations, which took so many seconds together.
type scraped struct {
	from, to trace.Time
	n, took  float64
}

func byEnd(a, b scraped) int { return cmp.Compare(a.to, b.to) }

// meanOf is that of several intervals, in s; NaN without an observation.
func meanOf(list []scraped) float64 {
	n, took := 0.0, 0.0
	for i := range list {
		n, took = n+list[i].n, took+list[i].took
	}
	return took / n
}

// scrapes returns what a server's histograms of a metric counted, in order of time, and the place of one of them. Without
// the counter of seconds, observations count as the middle of their bucket, and about is true.
func (l *Logged) scrapes(server int32, metric series.MetricID) (list []scraped, place int32, about bool) {
	for _, h := range l.counts()[server].histograms {
		if h.Metric != metric {
			continue
		}
		place = h.Place
		sum := l.counter(server, func(x *series.Series) bool {
			return x.Place == h.Place && x.Label == h.Label && strings.HasSuffix(l.Set.Metric(x.Metric).Name, secondsOf[metric])
		})
		about = about || sum == nil
		k := 0
		l.Set.Grown(&h, func(from, to trace.Time, counts []float64) {
			if from == 0 || !l.opt.inside(from) || !l.opt.inside(to) || counts[len(counts)-1] <= 0 {
				return
			}
			x := scraped{from: from, to: to, n: counts[len(counts)-1]}
			for ; k < len(sum) && sum[k].to < to; k++ {
			}
			if k < len(sum) && sum[k].to == to {
				x.took = sum[k].n
			} else {
				x.took = middles(h.Bounds, counts)
			}
			list = append(list, x)
		})
	}
	slices.SortStableFunc(list, byEnd)
	together := list[:0]
	for _, x := range list { // several histograms of one server, such as one for each model
		if n := len(together); n > 0 && together[n-1].to == x.to {
			together[n-1].n, together[n-1].took = together[n-1].n+x.n, together[n-1].took+x.took
			continue
		}
		together = append(together, x)
	}
	return together, place, about
}

// middles adds up observations as if each took as long as the middle of its bucket, in s; above the last bound, that.
func middles(bounds, counts []float64) (took float64) {
	least, before := 0.0, 0.0
	for k, most := range bounds {
		at := (least + most) / 2
		if math.IsInf(most, 1) {
			at = least
		}
		took += (counts[k] - before) * at
		least, before = most, counts[k]
	}
	return took
}

// counter adds up by how much some counters of a server grew from scrape to scrape; nil without any. A counter that
// falls began anew.
func (l *Logged) counter(server int32, is func(*series.Series) bool) (list []scraped) {
	for _, i := range l.counts()[server].counters {
		if !is(&l.Set.List[i]) {
			continue
		}
		var last series.Sample
		for s := range l.Set.Each(i) {
			if last.Time != 0 && s.Time > last.Time {
				n := s.Value - last.Value
				if n < 0 {
					n = s.Value
				}
				list = append(list, scraped{from: last.Time, to: s.Time, n: n})
			}
			last = s
		}
	}
	slices.SortStableFunc(list, byEnd)
	return list
}

// counted adds up by bucket of the grid, of the scrape before, by how much the counters of a server grew whose names end so; nil without any.
func (l *Logged) counted(server int32, name string) (out []float64) {
	for _, x := range l.counter(server, func(x *series.Series) bool { return strings.HasSuffix(l.Set.Metric(x.Metric).Name, ":"+name) }) {
		if b := l.Grid.Of(x.from); b >= 0 && b < l.Grid.N() {
			if out == nil {
				out = make([]float64, l.Grid.N())
			}
			out[b] += x.n
		}
	}
	return out
}

// within is the part of some intervals that begins in [from, to).
func within(list []scraped, from, to trace.Time) []scraped {
	a := slices.IndexFunc(list, func(x scraped) bool { return x.from >= from })
	if a < 0 {
		return nil
	}
	b := a
	for b < len(list) && list[b].from < to {
		b++
	}
	return list[a:b]
}

// A rise is since when requests of a server take longer.
type rise struct {
	metric        series.MetricID
	list          []scraped
	about         bool
	c             changepoint.Change
	before, after float64 // means, in s
}

// rose finds since when the mean of a histogram is much higher than before.
func rose(list []scraped) (c changepoint.Change, ok bool) {
	const fewRequests = 20
	n := func(from, to int) (n float64) {
		for _, x := range list[from:to] {
			n += x.n
		}
		return n
	}
	higher := func(from, k, to int) bool {
		return meanOf(list[k:to]) >= muchMore*meanOf(list[from:k]) && n(from, k) >= fewRequests && n(k, to) >= fewRequests
	}
	values := make([]float64, len(list))
	for i := range list {
		values[i] = meanOf(list[i : i+1])
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		before, after := meanOf(list[from:k]), meanOf(list[k:to])
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
func (l *Logged) Latencies() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "latencies in metrics", Of: "interval", Needed: 4}
	var out []finding.Finding
	all := 0.0                                                                         // seconds of all requests
	rises, at := make([][]rise, len(l.Set.Servers)), make([]int32, len(l.Set.Servers)) // by server
	for server := range rises {
		for _, metric := range []series.MetricID{series.TTFT, series.ITL, series.TPOT, series.E2E} {
			list, of, about := l.scrapes(int32(server), metric)
			check.N = max(check.N, len(list))
			if metric == series.E2E {
				for i := range list {
					all += list[i].took
				}
			}
			if c, ok := rose(list); ok {
				at[server], rises[server] = of, append(rises[server], rise{metric, list, about, c, meanOf(list[:c.At]), meanOf(list[c.At:c.To])})
			}
		}
	}
	for server := range rises {
		if len(rises[server]) > 0 {
			out = append(out, l.latency(int32(server), at[server], rises[server], all))
		}
	}
	if check.N == 0 {
		check.Reason = "no metrics have histograms of several scrapes"
	}
	return l.alike(out), check
}

// latency says which latencies of a server rose, first the one that makes up most of what a request takes longer.
func (l *Logged) latency(server, at int32, rises []rise, all float64) finding.Finding {
	lead := 0
	if last := &rises[len(rises)-1]; last.metric == series.E2E && len(rises) > 1 && rises[0].metric == series.TTFT && rises[0].after-rises[0].before < (last.after-last.before)/2 {
		lead = 1 // it is the tokens behind the first one
	}
	rises[0], rises[lead] = rises[lead], rises[0]
	r := &rises[0]
	c := r.c
	f := finding.Finding{Subkind: Latency, At: l.place(server, at), Since: r.list[c.At].from, Within: r.list[c.At].to - r.list[c.At].from, P: finding.Chance(c.P),
		Metric: finding.Metric{Name: l.Set.Metric(r.metric).Name, Unit: table.Duration, Before: r.before * 1e9, After: r.after * 1e9}}
	if math.IsNaN(c.P) {
		f.Confidence = finding.Likely
	}
	until := trace.Time(math.MaxInt64)
	if c.To < len(r.list) {
		f.Until = r.list[c.To].from
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
	if list, _, _ := l.scrapes(server, series.QueueTime); len(list) > 0 && r.metric != series.ITL {
		if before, after := meanOf(within(list, 0, f.Since)), meanOf(within(list, f.Since, until)); after > before {
			f.Evidence = append(f.Evidence, finding.Sentence("requests wait %s in the queue, %s before", seconds(after), seconds(before)))
		}
	}
	beside, asked, same := l.goesWith(server, f.Since, until)
	f.Evidence = append(f.Evidence, beside...)
	if asked != "" {
		f.Text += "; " + asked
	}
	if same {
		f.Subkind = Slowed
	}
	return f
}

// place is that of a server: of the only rank that it tells of, else that of its histograms.
func (l *Logged) place(server, histogram int32) place.Location {
	at, n := l.where(histogram), 0
	for i := range l.Ranks {
		if l.Ranks[i].Server == server {
			at, n = l.Ranks[i].Where, n+1
		}
	}
	if n != 1 {
		return l.where(histogram)
	}
	return at
}

// count is how many observations there were since a rise.
func (r *rise) count() (n float64) {
	for _, x := range r.list[r.c.At:r.c.To] {
		n += x.n
	}
	return n
}

// seconds says a duration that is in s.
func seconds(s float64) string { return words.Nearly(int64(s * 1e9)) }

// says is a sentence about a rise; at "" is known.
func (r *rise) says(set *series.Set, at string) string {
	about := ""
	if r.about {
		about = "about "
	}
	if at != "" {
		at = " on " + at
	}
	return fmt.Sprintf("%s is %s%s on average%s, %s before", set.Metric(r.metric).Name, about, seconds(r.after), at, seconds(r.before))
}

// goesWith says what else a server's metrics say before and behind a time, and whether more is asked of it, or about
// the same: that is known if they count requests.
func (l *Logged) goesWith(server int32, at, until trace.Time) (list []finding.Evidence, asked string, same bool) {
	var ranks []*Rank
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
		curve := l.added(ranks, m)
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
	first, _, _ := l.scrapes(server, series.TTFT)
	came := make([]float64, l.Grid.N())
	for _, x := range first {
		if b := l.Grid.Of(x.from); b >= 0 && b < len(came) {
			came[b] += x.n
		}
	}
	prompts := l.counted(server, "prompt_tokens_total")
	if len(first) == 0 || prompts == nil {
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
