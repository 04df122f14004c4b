package failed

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// LogEnds is the subkind of findings about servers whose logs end while those of others continue.
const LogEnds = "log ends"

// manyTimes is the least ratio of a silence to the longest one before, or of a gap between ends of logs to the next
// largest, that is significant.
const manyTimes = 3

// fewLeft is the largest number of requests that may all have ended within the 40 decode steps after a line, which
// show in no other: their server has nothing to do then.
const fewLeft = 3

// An ending is the end of a server's log.
type ending struct {
	server int32
	last   trace.Time        // time of its last line
	ranks  []*telemetry.Rank // ranks that log batches
}

// endings returns the ends of all logs with lines of batches, the latest first.
func endings(l *telemetry.Logged) (list []ending) {
	at := map[int32]int{}
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if r.Scraped {
			continue
		}
		k := order.At(at, &list, r.Server, func() ending { return ending{server: r.Server} })
		list[k].ranks, list[k].last = append(list[k].ranks, r), max(list[k].last, r.To)
	}
	for i := range l.Set.Sources {
		src := &l.Set.Sources[i]
		if src.Encoding != "server log" {
			continue
		}
		if k, ok := at[onlyServer(l, src)]; ok { // in a log of several servers, it is unknown whose last line that is
			list[k].last = max(list[k].last, src.Last)
		}
	}
	slices.SortStableFunc(list, func(a, b ending) int { return cmp.Compare(b.last, a.last) })
	return list
}

// onlyServer returns the server that a log is about, or -1 if there are several.
func onlyServer(l *telemetry.Logged, src *series.Source) int32 {
	server := int32(-1)
	for p := range src.About() {
		switch s := l.Set.Places[p].Server; {
		case server < 0:
			server = s
		case s != server:
			return -1
		}
	}
	return server
}

// early returns the logs that end minutes before others, and those others. If somebody collected the logs one after
// the other, their ends are spread over the time that this took; a gap much longer than all others is not explained
// by that. If several logs end at nearly the same time, collecting was quick, and only the gap before them counts.
func early(all []ending) (ended, on []ending) {
	const several = 2
	for k := several; k < len(all); k++ {
		switch spread := all[0].last - all[k-1].last; {
		case spread > together:
			k = len(all)
		case all[k-1].last-all[k].last > max(together, manyTimes*spread):
			return all[k:], all[:k]
		}
	}
	long, other, at := trace.Time(0), trace.Time(0), 0
	for k := 1; k < len(all); k++ {
		gap := all[k-1].last - all[k].last
		if gap > long {
			long, other, at = gap, long, k
		} else {
			other = max(other, gap)
		}
	}
	if long <= max(together, manyTimes*other) {
		return nil, all
	}
	return all[at:], all[:at]
}

// Endings finds servers whose logs end while those of others continue.
func Endings(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	all := endings(l)
	check := finding.Check{What: "logs that end while others go on", Of: "log", N: len(all), Needed: 2}
	if len(all) < 2 {
		check.Reason = "no logs of several servers have lines of batches"
	}
	ended, on := early(all)
	if len(ended) == 0 {
		return nil, check
	}
	var out []finding.Finding
	killed := killedServers(l)
	for i := range ended {
		x := &ended[i]
		if x.told(l, x.last) || killed[x.server] {
			continue
		}
		if f, ok := x.finding(l, on); ok {
			out = append(out, f)
		}
	}
	return out, check
}

// told reports whether the log, or a process next to the server, says why nothing comes after a time. That is another
// finding.
func (x *ending) told(l *telemetry.Logged, since trace.Time) bool {
	return slices.ContainsFunc(l.Events, func(e telemetry.Event) bool {
		switch e.Kind {
		case series.Stopping, series.Exception, series.OutOfMemory, series.Crash, series.Timeout, series.Unhealthy, series.Unrouted:
			return e.Server == x.server && max(e.First, e.Last) >= since-together
		}
		return false
	})
}

// held returns the number of requests that a server had when its log ended, and its longest silence before.
func (x *ending) held(l *telemetry.Logged) (requests float64, silent trace.Time) {
	for _, r := range x.ranks {
		var last, line telemetry.LoggedLine
		has := 0.0
		for lines := l.LinesOf(r.Place); lines.Next(&line); last = line {
			if last.At != 0 {
				silent = max(silent, line.At-last.At)
			}
			if line.Has(telemetry.RunningOf) {
				if has = line.Values[telemetry.RunningOf]; line.Has(telemetry.NewTokensOf) {
					has++ // a prefill adds to the running requests
				}
			}
		}
		requests += has
	}
	return requests, silent
}

// finding makes the finding of a log that ends. The load on the others since then shows whether its server still
// served.
func (x *ending) finding(l *telemetry.Logged, on []ending) (f finding.Finding, ok bool) {
	requests, silent := x.held(l)
	end := on[0].last
	beside := slices.DeleteFunc(slices.Clone(on), func(o ending) bool { return !o.through(x.last) })
	if requests < 1 || end-x.last <= manyTimes*silent || len(beside) == 0 {
		return f, false // it may have been idle, or ran at another time
	}
	s := &l.Set.Servers[x.server]
	f = finding.Finding{Subkind: LogEnds, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Since: x.last, Severity: finding.Info, Confidence: finding.Likely,
		Metric: finding.Metric{Name: "requests in its batch", Before: math.NaN(), After: requests}}
	f.Brief = fmt.Sprintf("the log of %s ends at %s", telemetry.Host(s), words.TimeOfDay(x.last))
	f.Text = fmt.Sprintf("%s with %s in its batch, while %s until %s", f.Brief, words.Counted(int(requests), "request"), othersGoOn(len(beside)), words.TimeOfDay(end))
	f.Evidence = append(f.Evidence, finding.Sentence("it was never silent for more than %s before", words.Nearly(int64(silent))))
	var others []*telemetry.Rank
	for _, o := range beside {
		others = append(others, o.ranks...)
	}
	shown, gone := moved(l, x.ranks, others, l.Grid.Of(x.last))
	if !gone {
		f.Text += ": it may have ended, it may be stuck, or its log was collected earlier"
		return f, true
	}
	f.Subkind, f.Severity, f.Cost = Ended, finding.Critical, x.cost(l, x.last)
	f.Text += ": they have taken over its work since then, so it ended or is stuck"
	if requests <= fewLeft {
		f.Text += ", or gets no more requests"
	}
	f.Evidence = append(f.Evidence, shown)
	return f, true
}

// cost returns the share of the time of all servers that is lost without this one from a time on.
func (x *ending) cost(l *telemetry.Logged, since trace.Time) float64 {
	from, to, _ := l.Set.Bounds()
	return share(to-since, to-from, serversOf(l))
}

// stands finds an SGLang server that logs no more batches while its log continues and requests come: each request
// that it takes in shows in a line. Requests that only wait may have been given up by their clients.
func (x *ending) stands(l *telemetry.Logged) (f finding.Finding, ok bool) {
	s := &l.Set.Servers[x.server]
	batch, waiting := trace.Time(0), 0.0
	for _, r := range x.ranks {
		batch = max(batch, r.To)
	}
	if s.Engine != "SGLang" || telemetry.Role(s) != request.Unified || x.last-batch <= together {
		return f, false
	}
	came := slices.IndexFunc(l.Events, func(e telemetry.Event) bool {
		return e.Kind == series.Note && e.Text == series.NoBatch && e.Server == x.server && e.First > batch
	})
	if came < 0 || x.told(l, batch) || x.began(l, batch) {
		return f, false
	}
	for _, r := range x.ranks {
		waiting += lastOf(l, r, series.Queued)
	}
	requests, silent := x.held(l)
	if x.last-batch <= manyTimes*silent {
		return f, false
	}
	e := &l.Events[came]
	f = finding.Finding{Subkind: Hang, At: place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), Since: batch, Confidence: finding.Likely, Cost: x.cost(l, batch),
		Metric: finding.Metric{Name: "requests without a batch", Before: math.NaN(), After: float64(e.Requests)}}
	f.Text = fmt.Sprintf("%s has stood still since %s, with %s in its batch and %.0f waiting: its log goes on until %s without a batch, although %s came", telemetry.Host(s), words.TimeOfDay(batch),
		words.Counted(int(requests), "request"), waiting, words.TimeOfDay(x.last), words.Counted(e.Requests, "more request"))
	f.Evidence = append(f.Evidence, finding.Sentence("%s:%d", e.File, e.Line), finding.Sentence("it logs a prefill for each request it takes in"))
	return f, true
}

// lastOf returns the last value of a gauge of a rank; 0 if there is none.
func lastOf(l *telemetry.Logged, r *telemetry.Rank, m series.MetricID) (value float64) {
	if !r.Has(m) || !(r.Most(m) > 0) {
		return 0
	}
	for i := range l.Set.List {
		if s := &l.Set.List[i]; s.Metric == m && s.Place == r.Place {
			for x := range l.Set.Each(i) {
				value = x.Value
			}
		}
	}
	return value
}

// began reports whether a server restarted after a time.
func (x *ending) began(l *telemetry.Logged, after trace.Time) bool {
	return slices.ContainsFunc(l.Events, func(e telemetry.Event) bool {
		return (e.Kind == series.Ready || e.Kind == series.Starting) && e.Server == x.server && e.Last > after
	})
}

// through reports whether a server logged batches long before a time, and long after it.
func (x *ending) through(at trace.Time) bool {
	return slices.ContainsFunc(x.ranks, func(r *telemetry.Rank) bool { return r.From < at-together && r.To > at+together })
}

func othersGoOn(n int) string {
	if n == 1 {
		return "that of another server goes on"
	}
	return fmt.Sprintf("those of %d others go on", n)
}

// moved reports whether a server's work moved to others at a bucket: they get more requests from then on or, if
// arrivals are unknown, have more running requests, by at least half of what it had.
func moved(l *telemetry.Logged, own, others []*telemetry.Rank, end int) (shown finding.Evidence, ok bool) {
	gets := func(r *telemetry.Rank) []float64 {
		came, _ := l.Arrivals(r)
		if r.Has(series.NewSeqs) {
			came, _ = r.TakenIn()
		}
		return came
	}
	comes := len(own) > 0 && gets(own[0]) != nil
	curve := func(ranks []*telemetry.Rank) []float64 {
		sum := make([]float64, l.Grid.N())
		for _, r := range ranks {
			list := l.Curve(r, series.Running)
			if comes {
				list = gets(r)
			}
			for b, n := range list {
				sum[b] += telemetry.Zero(n)
			}
		}
		return sum
	}
	const near = 2 // buckets
	was, theirs := curve(own), curve(others)
	if end < 1 || end >= len(was) {
		return shown, false
	}
	lost := level(was[:end])
	changes := changepoint.Levels(theirs, changepoint.Options{Alpha: 0.01, Keep: func(from, k, to int) bool {
		return lost > 0 && k >= end-near && k <= end+near && level(theirs[k:to])-level(theirs[from:k]) >= lost/2
	}})
	if len(changes) == 0 {
		return shown, false
	}
	c := &changes[0]
	before, after := level(theirs[c.From:c.At]), level(theirs[c.At:c.To])
	if !comes {
		return finding.Sentence("the others have %s requests in their batches since then, %s before", words.ThreeDigits(after), words.ThreeDigits(before)), true
	}
	seconds := float64(l.Grid.Bucket) / 1e9
	return finding.Sentence("the others get %s requests a second since then, %s before", words.ThreeDigits(after/seconds), words.ThreeDigits(before/seconds)), true
}

// level returns the mean of a curve.
func level(curve []float64) float64 {
	mean, _, _ := changepoint.Mean(curve)
	return mean
}
