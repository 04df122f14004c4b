package slow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Limits finds what ranks run out of while requests wait: KV cache, or places in the batch.
func Limits(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := judge.Check(l, "logged limits of servers")
	var out []finding.Finding
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if spokenBy(l, r) < judge.FewBuckets {
			if f, ok := firstOf(l, r, held.AtLast, held.Waiting, held.ManyWait); ok {
				out, check.Needed = append(out, f), min(check.Needed, check.N)
			}
			continue
		}
		full, noRoom := noRoom(l, r)
		most, stuck := stuck(l, r)
		starves, starved := starved(l, r)
		switch {
		case starved && !noRoom:
			if stuck { // requests that get no tokens do not end
				starves.Evidence = append(starves.Evidence, finding.Sentence("%s", most.Text))
			}
			out = append(out, starves)
		case stuck && noRoom && most.Cost > 2*full.Cost: // the cache filled up because of that
			most.Evidence = []finding.Evidence{finding.Sentence("%s", full.Text)}
			out = append(out, most)
		case noRoom:
			out = append(out, full)
		case stuck:
			out = append(out, most)
		default:
			if f, ok := firstOf(l, r, prefillBound, fills, held.Waiting); ok {
				out = append(out, f)
			}
		}
	}
	return judge.Alike(out), check
}

// firstOf returns the finding of the first rule that finds something about a rank.
func firstOf(l *telemetry.Logged, r *telemetry.Rank, rules ...func(*telemetry.Logged, *telemetry.Rank) (finding.Finding, bool)) (f finding.Finding, ok bool) {
	for _, rule := range rules {
		if f, ok = rule(l, r); ok {
			return f, true
		}
	}
	return f, false
}

// A lasting says in how many buckets something holds (n), of those with lines (all), how many of these are
// consecutive (inARow), and in which runs of buckets, [from, to], it mostly holds.
type lasting struct {
	n, all, inARow int
	runs           [][2]int
	within         int // number of the n buckets that are in runs
}

func during(l *telemetry.Logged, r *telemetry.Rank, holds func(b int) bool) (d lasting) {
	row := 0
	var hits []judge.Hit
	for b := range l.Grid.N() {
		if p := r.Points[series.Queued]; p == nil || p[b].N == 0 {
			continue
		}
		d.all++
		hits = append(hits, judge.Hit{Bucket: b, Holds: holds(b)})
		if !hits[len(hits)-1].Holds {
			row = 0
			continue
		}
		row++
		d.n, d.inARow = d.n+1, max(d.inARow, row)
	}
	d.runs = judge.Runs(hits)
	for _, h := range hits {
		if h.Holds && d.has(h.Bucket) {
			d.within++
		}
	}
	return d
}

// has reports whether a bucket is in one of the runs.
func (d *lasting) has(b int) bool {
	return slices.ContainsFunc(d.runs, func(run [2]int) bool { return run[0] <= b && b <= run[1] })
}

// over returns when something no longer holds; 0 if it holds until the end.
func (d *lasting) over(l *telemetry.Logged) trace.Time {
	if last := d.runs[len(d.runs)-1][1] + 1; last < l.Grid.N() {
		return l.Start(last)
	}
	return 0
}

// span says when something mostly holds.
func span(l *telemetry.Logged, d lasting) string {
	const few = 3
	at := func(b int) string { return words.TimeOfDay(l.Start(b)) }
	list := order.Each(d.runs, func(run [2]int) string { return fmt.Sprintf("from %s to %s", at(run[0]), at(run[1]+1)) })
	if len(list) == 1 {
		list[0] = fmt.Sprintf("between %s and %s", at(d.runs[0][0]), at(d.runs[0][1]+1))
	}
	if len(list) > few {
		list = append(list[:few-1], fmt.Sprintf("%d times more until %s", len(list)-few+1, at(d.runs[len(d.runs)-1][1]+1)))
	}
	if n := len(list); n > 1 {
		list[n-1] = "and " + list[n-1]
	}
	most := ""
	if d.within < d.n {
		most = "most of them "
	}
	return most + strings.Join(list, ", ")
}

// noRoom finds a KV cache that is full while requests wait.
func noRoom(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	usage := r.Points[series.KVUsage]
	if usage == nil {
		return f, false
	}
	waiting := func(b int) bool {
		if queued(r, b) > 0 {
			return true
		}
		return slices.ContainsFunc([]series.MetricID{series.Preallocated, series.RetractedQueue}, func(m series.MetricID) bool {
			p := r.Points[m]
			return p != nil && p[b].Most > 0
		})
	}
	holds := func(b int) bool { return usage[b].Most >= telemetry.Full && waiting(b) }
	d := during(l, r, holds)
	if d.all < judge.FewBuckets || d.n < 2 {
		return f, false
	}
	most := max(r.MostQueued(), telemetry.Zero(r.Most(series.Preallocated)), telemetry.Zero(r.Most(series.RetractedQueue)))
	f = finding.Finding{Subkind: held.KVCache, At: r.Where, Since: l.Start(d.runs[0][0]), Until: d.over(l), Within: judge.FewLimited * trace.Time(l.Grid.Bucket), Cost: l.Waiting(r, d.has),
		Metric: finding.Metric{Name: "KV cache in use", Unit: table.Share, Before: math.NaN(), After: r.Most(series.KVUsage) / 100}}
	f.Text = fmt.Sprintf("the %s of %s is full (%s %% and more) in %d of %d intervals of %s while up to %.0f requests wait, %s",
		r.Pool(), r.Where.String(), words.InPercent(telemetry.Full/100.0), d.n, d.all, words.Nearly(l.Grid.Bucket), most, span(l, d))
	f.Evidence = append(f.Evidence, finding.Sentence("its highest usage is %s %%", words.InPercent(r.Most(series.KVUsage)/100)))
	f.Evidence = append(f.Evidence, held.KeptFor(r)...)
	if kept, of := onTheWay(l, r, holds); 2*kept > of {
		f.Subkind = held.OnTheWay
		if r.Where.Role == request.Decode {
			f.Evidence = append(f.Evidence, finding.Sentence("%s %% of what is in use is kept for KV caches that prefill servers have yet to send", words.InPercent(kept/of)))
		}
	}
	if then, otherwise := tokensDuring(l, r, holds); then >= judge.MuchSlower*otherwise {
		f.Evidence = append(f.Evidence, finding.Sentence("a token takes %s then, %s otherwise", words.Nearly(int64(then*1e9)), words.Nearly(int64(otherwise*1e9))))
	}
	return f, true
}

// onTheWay returns how much of a KV cache is kept for requests between their prefill and their decode server, in
// intervals in which something holds, and how much is in use: shares on a decode server, requests on a prefill server.
func onTheWay(l *telemetry.Logged, r *telemetry.Rank, holds func(b int) bool) (kept, of float64) {
	mean := func(m series.MetricID, b int) float64 {
		if p := r.Points[m]; p != nil {
			return telemetry.Zero(p[b].Mean())
		}
		return 0
	}
	for b := range l.Grid.N() {
		switch {
		case !holds(b):
		case r.Where.Role == request.Decode:
			kept, of = kept+mean(series.PreallocatedUsage, b), of+mean(series.KVUsage, b)
		case r.Where.Role == request.Prefill:
			sent := mean(series.Sending, b)
			kept, of = kept+sent, of+sent+mean(series.NewSeqs, b)
		}
	}
	return kept, of
}

// tokensDuring returns how long a token takes in intervals in which something holds, and in the others, in s; NaN if
// there are few of either.
func tokensDuring(l *telemetry.Logged, r *telemetry.Rank, holds func(b int) bool) (then, otherwise float64) {
	const few = 3
	var sides [2][]float64
	for b, token := range stepTime(l, r) {
		if math.IsNaN(token) {
			continue
		}
		side := 0
		if holds(b) {
			side = 1
		}
		sides[side] = append(sides[side], token)
	}
	if len(sides[0]) < few || len(sides[1]) < few {
		return math.NaN(), math.NaN()
	}
	return telemetry.Middle(sides[1]), telemetry.Middle(sides[0])
}

// stuck finds a batch that has reached its largest size while requests wait and the KV cache has room.
func stuck(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	running := r.Points[series.Running]
	if running == nil || r.Where.Role == request.Prefill {
		return f, false
	}
	most, d := atLimit(l, r, running)
	if d.all < judge.FewBuckets || d.inARow < judge.FewLimited {
		return f, false
	}
	limit := "max running requests?"
	if most < 2 {
		if r.Mean(series.Queued) < 2 {
			return f, false // requests come one at a time
		}
		limit = "max running requests, or does the next one need more KV cache than is free?"
	}
	f = finding.Finding{Subkind: held.Batch, At: r.Where, Since: l.Start(d.runs[0][0]), Until: d.over(l), Within: judge.FewLimited * trace.Time(l.Grid.Bucket), Cost: l.Waiting(r, d.has),
		Metric: finding.Metric{Name: "running requests", Before: math.NaN(), After: most}}
	f.Text = fmt.Sprintf("%s is stuck at %s (%s) in %d of %d intervals of %s while up to %.0f wait, %s",
		r.Where.String(), words.Counted(int(most), "running request"), limit, d.n, d.all, words.Nearly(l.Grid.Bucket), r.MostQueued(), span(l, d))
	if u := r.Most(series.KVUsage); !math.IsNaN(u) {
		f.Evidence = append(f.Evidence, finding.Sentence("its KV cache has room: %s %% at most", words.InPercent(u/100)))
	}
	return f, true
}

// atLimit returns the number of requests that run while others wait, the same each time, and when: the largest number
// that ever ran or, if the server ran more earlier because it had another limit, the number that nearly always runs
// while requests wait.
func atLimit(l *telemetry.Logged, r *telemetry.Rank, running []telemetry.Point) (most float64, d lasting) {
	const alike, nearly = 0.03, 0.8
	var beside []float64
	waits := func(b int) bool { return running[b].N > 0 && r.Points[series.Queued][b].Mean() >= 1 }
	most = r.Most(series.Running)
	d = during(l, r, func(b int) bool {
		if waits(b) {
			beside = append(beside, running[b].Most)
		}
		return waits(b) && running[b].Most > (1-alike)*most
	})
	if d.inARow >= judge.FewLimited || len(beside) < judge.FewBuckets {
		return most, d
	}
	usual := telemetry.Middle(beside)
	other := during(l, r, func(b int) bool { return waits(b) && math.Abs(running[b].Most-usual) <= alike*usual })
	if float64(other.n) < nearly*float64(len(beside)) {
		return most, d
	}
	return usual, other
}

// prefillBound finds a prefill server whose queue does not empty although it computes prompts all the time, while its
// KV cache has room.
func prefillBound(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	if r.Where.Role != request.Prefill {
		return f, false
	}
	d := during(l, r, func(b int) bool {
		waits := r.Points[series.Queued][b].Mean()
		return waits >= 1 && load(r, b) > 0 && (r.Points[series.NewSeqs] == nil || !(waits <= r.Points[series.NewSeqs][b].Mean())) // else the next batch takes all of them
	})
	if d.all < judge.FewBuckets || d.inARow < judge.FewLimited {
		return f, false
	}
	f = finding.Finding{Subkind: held.Prefill, At: r.Where, Since: l.Start(d.runs[0][0]), Until: d.over(l), Within: judge.FewLimited * trace.Time(l.Grid.Bucket), Cost: l.Waiting(r, d.has),
		Metric: finding.Metric{Name: "requests waiting for prefill", Before: math.NaN(), After: r.MostQueued()}}
	f.Text = fmt.Sprintf("%s is prefill-bound: up to %.0f requests wait for it in %d of %d intervals of %s, %s",
		r.Where.String(), r.MostQueued(), d.n, d.all, words.Nearly(l.Grid.Bucket), span(l, d))
	room := true
	for i := range l.Ranks {
		if decode := &l.Ranks[i]; decode.Where.Role == request.Decode {
			if u := decode.Most(series.KVUsage); u >= telemetry.Full || telemetry.Zero(decode.Mean(series.Preallocated)) >= 1 {
				room = false
			} else if !math.IsNaN(u) {
				f.Evidence = append(f.Evidence, finding.Sentence("%s has room: its KV cache is %s %% full at most", decode.Where.String(), words.InPercent(u/100)))
			}
		}
	}
	if !room {
		f.Confidence = finding.Likely
	}
	return f, true
}
