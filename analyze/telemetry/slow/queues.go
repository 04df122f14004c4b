package slow

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// Changes finds queues that grow at some time, and says whether more requests came.
func Changes(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := judge.Check(l, "logged waits")
	if l.Grid.N() < judge.FewBuckets {
		out := risesOf(l)
		if len(out) > 0 {
			check.Needed = min(check.Needed, check.N)
		}
		return out, check
	}
	var out []finding.Finding
	for _, role := range []request.Role{request.Unified, request.Prefill, request.Decode, request.Other} {
		var ranks []*telemetry.Rank
		for i := range l.Ranks {
			if l.Ranks[i].Where.Role == role {
				ranks = append(ranks, &l.Ranks[i])
			}
		}
		if logged := slices.DeleteFunc(slices.Clone(ranks), func(r *telemetry.Rank) bool { return r.Scraped }); len(logged) > 0 {
			ranks = logged // metrics under other names may be from the same servers, which must not count twice
		}
		if len(ranks) == 0 {
			continue
		}
		for _, q := range queues {
			if q.role != request.Other && q.role != role {
				continue
			}
			length := added(l, ranks, q.metric)
			if length == nil {
				continue
			}
			if q.metric == series.Preallocated && mostFull(ranks) >= telemetry.Full {
				q.of = "wait for room in the KV cache"
			}
			f, ok := growth(l, ranks, q, length)
			if !ok {
				f, ok = ramp(l, ranks, q, length)
			}
			if !ok {
				continue
			}
			if usage := mostFull(ranks); q.metric == series.Preallocated && usage < telemetry.Full {
				f.Evidence = append([]finding.Evidence{finding.Sentence("its KV cache has room: %s %% at most", words.InPercent(usage/100))}, f.Evidence...)
			}
			if n := len(out) - 1; n >= 0 && judge.Meet(&out[n], &f) { // waiting on one side keeps the other side waiting
				if out[n].Cost < f.Cost {
					out[n], f = f, out[n]
				}
				out[n].Evidence = append(append(out[n].Evidence, finding.Sentence("%s", f.Text)), f.Evidence...)
				continue
			}
			out = append(out, f)
		}
	}
	return withHalts(l, out), check
}

// mostFull returns the highest usage of the KV cache on any of some ranks, in percent; NaN if unknown.
func mostFull(ranks []*telemetry.Rank) float64 {
	most := math.NaN()
	for _, r := range ranks {
		if u := r.Most(series.KVUsage); u > most || math.IsNaN(most) {
			most = u
		}
	}
	return most
}

// A queue is a kind of queue that may grow.
type queue struct {
	metric series.MetricID
	of     string // what requests in it do, as a verb
	role   request.Role
	// onlyRamps says that requests pass through the queue, so that more are in it whenever more come.
	onlyRamps bool
}

var queues = []queue{
	{metric: series.Queued, of: "wait", role: request.Other},
	{metric: series.Preallocated, of: "wait to be taken in", role: request.Decode}, // a full KV cache is one possible reason
	{metric: series.Bootstrapping, of: "wait for their decode server", role: request.Prefill, onlyRamps: true},
	{metric: series.Running, of: "run", role: request.Other},
}

// isMuchLonger reports whether a queue has at least twice as many requests plus one.
func isMuchLonger(before, after float64) bool { return after >= 2*before+1 }

// growth finds a queue that grows at some time. length is its length by bucket.
func growth(l *telemetry.Logged, ranks []*telemetry.Rank, q queue, length []float64) (f finding.Finding, ok bool) {
	if q.onlyRamps {
		return f, false
	}
	came := cameTo(ranks)
	list := changepoint.Levels(length, changepoint.Options{Alpha: judge.Surely, Keep: func(from, k, to int) bool {
		before, after := judge.Mean(length[from:k]), judge.Mean(length[k:to])
		return isMuchLonger(min(before, after), max(before, after))
	}})
	if c, ok := episode(length); ok && len(list) == 0 {
		list = append(list, c)
	}
	for _, c := range list {
		before, after := judge.Mean(length[c.From:c.At]), judge.Mean(length[c.At:c.To])
		if after <= before {
			continue
		}
		if q.metric != series.Running && isSteady(length, c) {
			return grows(l, ranks, q, length, c), true
		}
		cost, suffered := timeIn(l, ranks, q.metric, c.At, c.To), []finding.Evidence(nil)
		if q.metric == series.Running {
			if came == nil || before < 1 || after < 2*before || !turnedOver(length, came, c) {
				continue // the number running follows the arrivals; or the servers did next to nothing before
			}
			longer := judge.MuchLonger
			if moreCame(came, c) {
				longer = judge.MuchMore // larger batches take longer by design
			}
			if cost, suffered = suffer(l, ranks, c, longer); suffered == nil {
				continue // the server has more to do, but no request waits for it
			}
		}
		most := slices.Max(length[c.At:c.To])
		f = finding.Finding{Subkind: finding.Waits, At: place.Location{Scope: place.WholeRole, Role: ranks[0].Where.Role}, Since: l.Start(c.At), P: finding.Chance(c.P),
			Cost: cost, Metric: finding.Metric{Name: l.Set.Metric(q.metric).Name, Before: before, After: after}}
		if r := mostOf(l, ranks, q.metric, c); r != nil {
			f.At = r.Where
		}
		if c.To < len(length) {
			f.Until = l.Start(c.To)
		}
		f.Text = fmt.Sprintf("%s%s requests %s on %s (%s before)", lasts(f.Since, f.Until), words.ThreeDigits(after), q.of, f.At.String(), words.ThreeDigits(before))
		f.Evidence = append(suffered, finding.Sentence("at most, %.0f of them on average over %s", most, words.Nearly(l.Grid.Bucket)))
		if came != nil {
			arrivals(l, &f, came, c)
		}
		return f, true
	}
	return f, false
}

// timeIn returns the share of the time of all requests that they spend in a queue of some ranks, in buckets [from,
// to).
func timeIn(l *telemetry.Logged, ranks []*telemetry.Rank, m series.MetricID, from, to int) (part float64) {
	for _, r := range ranks {
		part += l.TimeIn(r, func(b int) bool { return b >= from && b < to }, m)
	}
	return part
}

// isSteady reports whether a queue grew about as fast before a change as after it, so that nothing changed.
func isSteady(length []float64, c changepoint.Change) bool {
	pace := func(from, to int) float64 { return (length[to-1] - length[from]) / float64(to-from) }
	before, after := pace(c.From, c.At), pace(c.At, c.To)
	return c.At-c.From >= judge.FewBuckets && c.To-c.At >= judge.FewBuckets && after > 0 && before > after/2
}

// grows makes the finding of a queue that grows steadily from before a change until the change ends.
func grows(l *telemetry.Logged, ranks []*telemetry.Rank, q queue, length []float64, c changepoint.Change) finding.Finding {
	first, last := length[c.From], length[c.To-1]
	f := finding.Finding{Subkind: finding.Waits, At: place.Location{Scope: place.WholeRole, Role: ranks[0].Where.Role}, Since: l.Start(c.From), P: finding.Chance(c.P),
		Cost: timeIn(l, ranks, q.metric, c.From, c.To), Metric: finding.Metric{Name: l.Set.Metric(q.metric).Name, Before: first, After: last}}
	if r := mostOf(l, ranks, q.metric, c); r != nil {
		f.At = r.Where
	}
	if c.To < len(length) {
		f.Until = l.Start(c.To)
	}
	f.Text = fmt.Sprintf("ever more requests %s on %s: %s at %s, %s at %s", q.of, f.At.String(), words.ThreeDigits(first), words.TimeOfDay(f.Since), words.ThreeDigits(last), words.TimeOfDay(l.Start(c.To)))
	if came := cameTo(ranks); came != nil {
		f.Evidence = append(f.Evidence, finding.Sentence("%s a second are taken in", words.ThreeDigits(judge.Mean(came[c.From:c.To])/(float64(l.Grid.Bucket)/1e9))))
	}
	return f
}

// ramp finds a queue that grows from the beginning on and never shrinks: more requests come than leave all the time,
// so that nothing changes.
func ramp(l *telemetry.Logged, ranks []*telemetry.Rank, q queue, length []float64) (f finding.Finding, ok bool) {
	if q.metric == series.Running || !slices.IsSorted(length) {
		return f, false
	}
	grew := 0
	for b := 1; b < len(length); b++ {
		if length[b] > length[b-1] {
			grew++
		}
	}
	first, last := length[0], length[len(length)-1]
	if 2*grew < len(length) || !isMuchLonger(first, last) {
		return f, false
	}
	f = finding.Finding{Subkind: finding.Waits, At: place.Location{Scope: place.WholeRole, Role: ranks[0].Where.Role}, Since: l.Start(0), Cost: timeIn(l, ranks, q.metric, 0, l.Grid.N()), Confidence: finding.Certain,
		Metric: finding.Metric{Name: l.Set.Metric(q.metric).Name, Before: first, After: last}}
	if len(ranks) == 1 {
		f.At = ranks[0].Where
	}
	f.Text = fmt.Sprintf("ever more requests %s on %s: %s at the beginning, %s at the end, and in no interval of %s fewer than in the one before",
		q.of, f.At.String(), words.ThreeDigits(first), words.ThreeDigits(last), words.Nearly(l.Grid.Bucket))
	return f, true
}

// episode finds a run of intervals in which a queue is longer than random arrivals explain, but that is too short to
// be found as a change of level.
func episode(length []float64) (c changepoint.Change, ok bool) {
	const deviations = 6 // of requests that come at random
	usual := telemetry.Middle(length)
	limit := max(2*usual, usual+deviations*math.Sqrt(usual+1))
	best := 0
	for from := 0; from < len(length); from++ {
		to := from
		for to < len(length) && length[to] >= limit {
			to++
		}
		if to-from > best {
			best, c = to-from, changepoint.Change{At: from, To: to, P: math.NaN()}
		}
		from = to
	}
	return c, best >= judge.FewLimited && c.At > 0
}

// mostOf returns the rank that accounts for nearly all of an increase, or nil if it is several.
func mostOf(l *telemetry.Logged, ranks []*telemetry.Rank, m series.MetricID, c changepoint.Change) *telemetry.Rank {
	const nearly = 0.7
	if len(ranks) == 1 {
		return ranks[0]
	}
	all, most := 0.0, 0.0
	var top *telemetry.Rank
	for _, r := range ranks {
		level := added(l, []*telemetry.Rank{r}, m)
		if level == nil {
			continue
		}
		more := judge.Mean(level[c.At:c.To]) - judge.Mean(level[c.From:c.At])
		if all += more; more > most {
			top, most = r, more
		}
	}
	if most < nearly*all {
		return nil
	}
	return top
}

// moreCame reports whether clearly more requests came after a change than before.
func moreCame(came []float64, c changepoint.Change) bool {
	return judge.Mean(came[c.At:c.To]) > 1.25*judge.Mean(came[c.From:c.At])
}

// turnedOver reports whether as many requests ended before a change as were running then. Otherwise the batch was
// only filling up, and the number running shows how long ago it began, not how long requests take.
func turnedOver(running, came []float64, c changepoint.Change) bool {
	began, ended := came[c.From:c.At], 0.0
	for _, n := range began {
		ended += n
	}
	ended += running[c.From] - running[c.At-1]
	return ended >= judge.Mean(running[c.From:c.At])
}

// suffer returns the cost for requests of a change in load, and the evidence: more requests wait, or tokens take
// longer. Without either, shows is nil.
func suffer(l *telemetry.Logged, ranks []*telemetry.Rank, c changepoint.Change, longer float64) (cost float64, shows []finding.Evidence) {
	in := func(b int) bool { return b >= c.At && b < c.To }
	if wait := added(l, ranks, series.Queued); wait != nil {
		if x, y := judge.Mean(wait[c.From:c.At]), judge.Mean(wait[c.At:c.To]); y >= 2*x+1 {
			for _, r := range ranks {
				cost += l.Waiting(r, in)
			}
			shows = append(shows, finding.Sentence("%s wait, %s before", words.ThreeDigits(y), words.ThreeDigits(x)))
		}
	}
	for _, r := range ranks {
		if x, y := tokenTimes(l, r, c); y >= longer*x && !isSlow(l, r) { // if other ranks with the same load are not slower, load is not the reason
			cost += (1 - x/y) * l.Running(r, in)
			shows = append(shows, finding.Sentence("a token takes %s on %s, %s before", words.Nearly(int64(y*1e9)), r.Where.String(), words.Nearly(int64(x*1e9))))
		}
	}
	for _, m := range metersOf(l, ranks) {
		if x, y := scrapedMeans(l, m, series.TTFT, c); y >= judge.MuchMore*x {
			n := telemetry.CountOf(telemetry.Within(l.Scrapes(m, series.TTFT).List, l.Start(c.At), l.Start(c.To)))
			cost = max(cost, l.PartOf((y-x)*n))
			at := meteredAt(l, m)
			shows = append(shows, finding.Sentence("TTFT is %s on %s, %s before", seconds(y), at.String(), seconds(x)))
		}
	}
	return cost, shows
}

// metersOf returns the meters that count the requests of some ranks.
func metersOf(l *telemetry.Logged, ranks []*telemetry.Rank) (list []telemetry.Meter) {
	for _, r := range ranks {
		if m, _ := l.MeterOf(r); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// tokenTimes returns the time per token before and after a change, in s, from lines of batches, or else from
// histograms, or else from gauges; NaN if unknown.
func tokenTimes(l *telemetry.Logged, r *telemetry.Rank, c changepoint.Change) (before, after float64) {
	if r.Scraped {
		m, _ := l.MeterOf(r)
		if before, after = scrapedMeans(l, m, series.ITL, c); !math.IsNaN(before) && !math.IsNaN(after) {
			return before, after
		}
	}
	steps := stepTime(l, r)
	return telemetry.Middle(steps[c.From:c.At]), telemetry.Middle(steps[c.At:c.To])
}

// scrapedMeans returns the means of a histogram before and after a change, in s.
func scrapedMeans(l *telemetry.Logged, of telemetry.Meter, m series.MetricID, c changepoint.Change) (before, after float64) {
	list := l.Scrapes(of, m).List
	return telemetry.MeanOf(telemetry.Within(list, l.Start(c.From), l.Start(c.At))), telemetry.MeanOf(telemetry.Within(list, l.Start(c.At), l.Start(c.To)))
}

// arrivals adds to a finding whether more requests came when a queue grew.
func arrivals(l *telemetry.Logged, f *finding.Finding, came []float64, c changepoint.Change) {
	seconds := float64(l.Grid.Bucket) / 1e9
	x, y := judge.Mean(came[c.From:c.At])/seconds, judge.Mean(came[c.At:c.To])/seconds
	if math.IsNaN(x) || math.IsNaN(y) || x <= 0 || y <= 0 {
		return
	}
	switch {
	case y > 1.25*x:
		f.Text += fmt.Sprintf("; more are taken in: %s a second, %s before", words.ThreeDigits(y), words.ThreeDigits(x))
	case y < 0.8*x:
		f.Text += fmt.Sprintf("; fewer are taken in: %s a second, %s before", words.ThreeDigits(y), words.ThreeDigits(x))
	default:
		f.Text += fmt.Sprintf("; about as many are taken in as before: %s a second", words.ThreeDigits(y))
	}
}

// added returns the sum of a metric over ranks, by bucket; nil if none has it. Between two lines of a rank, it takes
// the smaller value.
func added(l *telemetry.Logged, ranks []*telemetry.Rank, m series.MetricID) []float64 {
	var out []float64
	for _, r := range ranks {
		if !r.Has(m) {
			continue
		}
		if out == nil {
			out = make([]float64, l.Grid.N())
		}
		level, last := l.Curve(r, m), 0
		for b, v := range level {
			if math.IsNaN(v) {
				continue
			}
			out[b] += v
			for gap := last + 1; gap < b; gap++ { // without lines: the rank may have been idle, unless it still has requests
				out[gap] += min(telemetry.Zero(level[last]), v)
			}
			last = b
		}
	}
	return out
}

// risesOf finds queues that grow from each of few lines to the next.
func risesOf(l *telemetry.Logged) (out []finding.Finding) {
	const least = 5 // lines; they are in this order by chance in less than 1 of 100 cases
	for i := range l.Ranks {
		r := &l.Ranks[i]
		for _, q := range queues {
			if q.metric == series.Running || q.role != request.Other && q.role != r.Where.Role {
				continue
			}
			n, rises := 0, true
			var first, last series.Sample
			for _, k := range l.SeriesOf(r.Place) {
				if l.Set.List[k].Metric != q.metric {
					continue
				}
				for x := range l.Set.Each(k) {
					if !l.Opt.Inside(x.Time) {
						continue
					}
					if n++; n == 1 {
						first = x
					}
					rises, last = rises && (n == 1 || x.Value > last.Value), x
				}
			}
			if n < least || !rises {
				continue
			}
			f := finding.Finding{Subkind: finding.Waits, At: r.Where, Since: first.Time, Severity: finding.Warning, Confidence: finding.Likely, Metric: finding.Metric{Name: l.Set.Metric(q.metric).Name, Before: first.Value, After: last.Value}}
			f.Text = fmt.Sprintf("ever more requests %s on %s: %.0f at %s, %.0f at %s", q.of, r.Where.String(), first.Value, words.TimeOfDay(first.Time), last.Value, words.TimeOfDay(last.Time))
			f.Evidence = append(f.Evidence, finding.Sentence("each of %d lines has more than the one before", n), finding.Sentence("there are too few samples to say what it costs"))
			out = append(out, f)
		}
	}
	return out
}
