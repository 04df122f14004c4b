package telemetry

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// full is from which usage on, in %, a KV cache has no room for one more request of usual size:
// SGLang keeps a part for the tokens that running requests will still give.
const full = 90

// fewLimited is in how many intervals that follow each other a queue must be there to be more than a few requests
// that came together, or the wait for a long prompt.
const fewLimited = 4

// Limits finds what ranks have no more of while requests wait: KV cache, or places in the batch.
func (l *Logged) Limits() ([]finding.Finding, finding.Check) {
	check := l.check("logged limits of servers")
	var out []finding.Finding
	if l.Grid.N() < fewBuckets {
		return nil, check
	}
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if f, ok := l.noRoom(r); ok {
			out = append(out, f)
		} else if f, ok := l.stuck(r); ok {
			out = append(out, f)
		} else if f, ok := l.prefillBound(r); ok {
			out = append(out, f)
		}
	}
	return l.alike(out), check
}

// Subkinds of findings of limits.
const (
	kvSubkind      = "KV cache"
	runningSubkind = "running requests"
	prefillSubkind = "prefill"
)

// Limits are the subkinds of findings of limits.
var Limits = []string{kvSubkind, runningSubkind, prefillSubkind}

// alike makes one finding of those of one subkind on several ranks of a role.
func (l *Logged) alike(list []finding.Finding) (out []finding.Finding) {
	for _, f := range list {
		k := slices.IndexFunc(out, func(o finding.Finding) bool { return o.Subkind == f.Subkind && o.At.Role == f.At.Role })
		if k < 0 {
			out = append(out, f)
			continue
		}
		o := &out[k]
		if f.Cost > o.Cost {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", o.Text))
			f.Evidence = append(f.Evidence, o.Evidence...)
			f.At.Scope = place.WholeRole
			*o = f
			continue
		}
		o.At.Scope = place.WholeRole
		o.Evidence = append(o.Evidence, finding.Sentence("%s", f.Text))
	}
	return out
}

// A lasting says in how many buckets something holds, of those that had lines at all, how many of
// them follow each other, and which are the first and the last one.
type lasting struct{ n, all, inARow, first, last int }

func (l *Logged) during(r *Rank, holds func(b int) bool) (d lasting) {
	row := 0
	for b := range l.Grid.N() {
		if p := r.points[series.Queued]; p == nil || p[b].n == 0 {
			continue
		}
		d.all++
		if !holds(b) {
			row = 0
			continue
		}
		if d.n == 0 {
			d.first = b
		}
		row++
		d.n, d.last, d.inARow = d.n+1, b, max(d.inARow, row)
	}
	return d
}

// span says when buckets were.
func (l *Logged) span(d lasting) string {
	from, to := clock(l.start(d.first)), clock(l.start(d.last+1))
	return fmt.Sprintf("between %s and %s", from, to)
}

// mostQueued is how many requests wait at most.
func (r *Rank) mostQueued() float64 { return r.Most(series.Queued) }

// noRoom finds a KV cache that is full while requests wait.
func (l *Logged) noRoom(r *Rank) (f finding.Finding, ok bool) {
	usage := r.points[series.KVUsage]
	if usage == nil {
		return f, false
	}
	waiting := func(b int) bool {
		if r.queued(b) > 0 {
			return true
		}
		p := r.points[series.Preallocated]
		return p != nil && p[b].most > 0
	}
	holds := func(b int) bool { return usage[b].most >= full && waiting(b) }
	d := l.during(r, holds)
	if d.all < fewBuckets || d.n < 2 {
		return f, false
	}
	most := max(r.mostQueued(), zero(r.Most(series.Preallocated)))
	f = finding.Finding{Subkind: kvSubkind, At: r.Where, Since: l.start(d.first), Cost: float64(d.n) / float64(l.Grid.N()),
		Metric: finding.Metric{Name: "KV cache in use", Unit: table.Share, Before: math.NaN(), After: r.Most(series.KVUsage) / 100}}
	f.Text = fmt.Sprintf("the KV cache of %s is full (%s %% and more) in %d of %d intervals of %s while up to %.0f requests wait, %s",
		r.Where.String(), words.InPercent(full/100.0), d.n, d.all, words.Nearly(l.Grid.Bucket), most, l.span(d))
	f.Evidence = append(f.Evidence, finding.Sentence("its highest usage is %s %%", words.ThreeDigits(r.Most(series.KVUsage))))
	if then, otherwise := l.tokensDuring(r, holds); then >= muchSlower*otherwise {
		f.Evidence = append(f.Evidence, finding.Sentence("a token takes %s then, %s otherwise", words.Nearly(int64(then*1e9)), words.Nearly(int64(otherwise*1e9))))
	}
	return f, true
}

// tokensDuring returns what a token of a request takes in the intervals in which something holds and in the others, in s;
// NaN where there are few.
func (l *Logged) tokensDuring(r *Rank, holds func(b int) bool) (then, otherwise float64) {
	const few = 3
	var sides [2][]float64
	for b, token := range l.stepTime(r) {
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
	return middle(sides[1]), middle(sides[0])
}

func zero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// stuck finds a batch that has reached its largest size while requests wait and the KV cache has room.
func (l *Logged) stuck(r *Rank) (f finding.Finding, ok bool) {
	running := r.points[series.Running]
	if running == nil || r.Where.Role == request.Prefill {
		return f, false
	}
	most := r.Most(series.Running)
	d := l.during(r, func(b int) bool {
		return running[b].n > 0 && running[b].most > 0.97*most && r.points[series.Queued][b].mean() >= 1
	})
	if d.all < fewBuckets || d.inARow < fewLimited {
		return f, false
	}
	limit := "max running requests?"
	if most < 2 {
		if r.Mean(series.Queued) < 2 {
			return f, false // one waits for the other
		}
		limit = "max running requests, or does the next one need more KV cache than is free?"
	}
	f = finding.Finding{Subkind: runningSubkind, At: r.Where, Since: l.start(d.first), Cost: float64(d.n) / float64(l.Grid.N()),
		Metric: finding.Metric{Name: "running requests", Before: math.NaN(), After: most}}
	f.Text = fmt.Sprintf("running is stuck at %.0f on %s (%s) in %d of %d intervals of %s while up to %.0f wait, %s",
		most, r.Where.String(), limit, d.n, d.all, words.Nearly(l.Grid.Bucket), r.mostQueued(), l.span(d))
	if u := r.Most(series.KVUsage); !math.IsNaN(u) {
		f.Evidence = append(f.Evidence, finding.Sentence("its KV cache has room: %s %% at most", words.ThreeDigits(u)))
	}
	return f, true
}

// prefillBound finds a prefill server whose queue does not empty although it computes prompts all
// the time, while its KV cache has room.
func (l *Logged) prefillBound(r *Rank) (f finding.Finding, ok bool) {
	if r.Where.Role != request.Prefill {
		return f, false
	}
	d := l.during(r, func(b int) bool { return r.points[series.Queued][b].mean() >= 1 && r.load(b) > 0 })
	if d.all < fewBuckets || d.inARow < fewLimited {
		return f, false
	}
	f = finding.Finding{Subkind: prefillSubkind, At: r.Where, Since: l.start(d.first), Cost: float64(d.n) / float64(l.Grid.N()),
		Metric: finding.Metric{Name: "requests waiting for prefill", Before: math.NaN(), After: r.mostQueued()}}
	f.Text = fmt.Sprintf("%s is prefill-bound: up to %.0f requests wait for it in %d of %d intervals of %s, %s",
		r.Where.String(), r.mostQueued(), d.n, d.all, words.Nearly(l.Grid.Bucket), l.span(d))
	room := true
	for i := range l.Ranks {
		if decode := &l.Ranks[i]; decode.Where.Role == request.Decode {
			if u := decode.Most(series.KVUsage); u >= full || zero(decode.Mean(series.Preallocated)) >= 1 {
				room = false
			} else if !math.IsNaN(u) {
				f.Evidence = append(f.Evidence, finding.Sentence("%s has room: its KV cache is %s %% full at most", decode.Where.String(), words.ThreeDigits(u)))
			}
		}
	}
	if !room {
		f.Confidence = finding.Likely
	}
	return f, true
}

// Changes finds queues that grow at some time, and says whether more requests came.
func (l *Logged) Changes() ([]finding.Finding, finding.Check) {
	check := l.check("logged waits")
	if l.Grid.N() < fewBuckets {
		return nil, check
	}
	var out []finding.Finding
	for _, role := range []request.Role{request.Unified, request.Prefill, request.Decode, request.Other} {
		var ranks []*Rank
		for i := range l.Ranks {
			if l.Ranks[i].Where.Role == role {
				ranks = append(ranks, &l.Ranks[i])
			}
		}
		if len(ranks) == 0 {
			continue
		}
		for _, q := range queues {
			if q.role != request.Other && q.role != role {
				continue
			}
			length := l.added(ranks, q.metric)
			if length == nil {
				continue
			}
			if q.metric == series.Preallocated && mostFull(ranks) >= full {
				q.of = "wait for room in the KV cache"
			}
			f, ok := l.growth(ranks, q, length)
			if !ok {
				f, ok = l.ramp(ranks, q, length)
			}
			if !ok {
				continue
			}
			if usage := mostFull(ranks); q.metric == series.Preallocated && usage < full {
				f.Evidence = append([]finding.Evidence{finding.Sentence("its KV cache has room: %s %% at most", words.ThreeDigits(usage))}, f.Evidence...)
			}
			if n := len(out) - 1; n >= 0 && meet(&out[n], &f) { // what waits on one side keeps the other one waiting
				if out[n].Cost < f.Cost {
					out[n], f = f, out[n]
				}
				out[n].Evidence = append(append(out[n].Evidence, finding.Sentence("%s", f.Text)), f.Evidence...)
				continue
			}
			out = append(out, f)
		}
	}
	return out, check
}

// mostFull is how full the KV cache of any of some ranks is at most, in percent; NaN if none says.
func mostFull(ranks []*Rank) float64 {
	most := math.NaN()
	for _, r := range ranks {
		if u := r.Most(series.KVUsage); u > most || math.IsNaN(most) {
			most = u
		}
	}
	return most
}

// meet reports whether two findings are of one time.
func meet(f, g *finding.Finding) bool {
	return (f.Until == 0 || f.Until >= g.Since) && (g.Until == 0 || g.Until >= f.Since)
}

// A queue is one that may grow.
type queue struct {
	metric series.MetricID
	of     string // what requests in it do
	role   request.Role
	// onlyRamps: requests pass through it, so that it holds more of them when more come.
	onlyRamps bool
}

var queues = []queue{
	{metric: series.Queued, of: "wait", role: request.Other},
	{metric: series.Preallocated, of: "wait to be taken in", role: request.Decode}, // which a full KV cache is one reason for,
	{metric: series.Bootstrapping, of: "wait for their decode server", role: request.Prefill, onlyRamps: true},
	{metric: series.Running, of: "run", role: request.Other},
}

// isMuchLonger reports whether a queue has at least twice as many requests, or one instead of none.
func isMuchLonger(before, after float64) bool { return after >= 2*before+1 }

// growth finds a queue that grows at some time, given how many are in it.
func (l *Logged) growth(ranks []*Rank, q queue, length []float64) (f finding.Finding, ok bool) {
	if q.onlyRamps {
		return f, false
	}
	came := l.added(ranks, series.NewSeqs)
	list := changepoint.Levels(length, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		before, after := mean(length[from:k]), mean(length[k:to])
		return isMuchLonger(min(before, after), max(before, after))
	}})
	if c, ok := episode(length); ok && len(list) == 0 {
		list = append(list, c)
	}
	for _, c := range list {
		before, after := mean(length[c.From:c.At]), mean(length[c.At:c.To])
		if after <= before {
			continue
		}
		cost, suffered := float64(c.To-c.At)/float64(l.Grid.N()), []finding.Evidence(nil)
		if q.metric == series.Running {
			if came == nil || after < 2*before || !turnedOver(length, came, c) {
				continue // as many run as come, and for as long
			}
			longer := muchLonger
			if moreCame(came, c) {
				longer = muchMore // larger batches take longer: that is what they are for
			}
			if cost, suffered = l.suffer(ranks, c, longer); suffered == nil {
				continue // the server is used more, and nobody has to wait for it
			}
		}
		most := slices.Max(length[c.At:c.To])
		f = finding.Finding{Subkind: finding.Waits, At: place.Location{Scope: place.WholeRole, Role: ranks[0].Where.Role}, Since: l.start(c.At), P: finding.Chance(c.P),
			Cost: cost, Metric: finding.Metric{Name: l.Set.Metric(q.metric).Name, Before: before, After: after}}
		if r := l.mostOf(ranks, q.metric, c); r != nil {
			f.At = r.Where
		}
		if c.To < len(length) {
			f.Until = l.start(c.To)
		}
		f.Text = fmt.Sprintf("since %s, %s requests %s on %s (%s before)", clock(f.Since), words.ThreeDigits(after), q.of, f.At.String(), words.ThreeDigits(before))
		f.Evidence = append(suffered, finding.Sentence("at most, %.0f of them on average over %s", most, words.Nearly(l.Grid.Bucket)))
		if came != nil {
			l.arrivals(&f, came, c)
		}
		return f, true
	}
	return f, false
}

// ramp finds a queue that becomes longer from the beginning on, and never shorter: at all times, more
// requests come than leave, so that nothing changes at any time.
func (l *Logged) ramp(ranks []*Rank, q queue, length []float64) (f finding.Finding, ok bool) {
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
	f = finding.Finding{Subkind: finding.Waits, At: place.Location{Scope: place.WholeRole, Role: ranks[0].Where.Role}, Since: l.start(0), Cost: 1, Confidence: finding.Certain,
		Metric: finding.Metric{Name: l.Set.Metric(q.metric).Name, Before: first, After: last}}
	if len(ranks) == 1 {
		f.At = ranks[0].Where
	}
	f.Text = fmt.Sprintf("ever more requests %s on %s: %s at the beginning, %s at the end, and in no interval of %s fewer than in the one before",
		q.of, f.At.String(), words.ThreeDigits(first), words.ThreeDigits(last), words.Nearly(l.Grid.Bucket))
	return f, true
}

// episode finds when so many are in a queue as never come together by chance, for some intervals: too
// short a time for the rest to show that anything changed.
func episode(length []float64) (c changepoint.Change, ok bool) {
	const deviations = 6 // of requests that come and go by themselves
	usual := middle(length)
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
	return c, best >= fewLimited && c.At > 0
}

// mostOf is the rank that nearly all of what is more is on; nil is none of several.
func (l *Logged) mostOf(ranks []*Rank, m series.MetricID, c changepoint.Change) *Rank {
	const nearly = 0.7
	if len(ranks) == 1 {
		return ranks[0]
	}
	all, most := 0.0, 0.0
	var top *Rank
	for _, r := range ranks {
		level := l.added([]*Rank{r}, m)
		if level == nil {
			continue
		}
		more := mean(level[c.At:c.To]) - mean(level[c.From:c.At])
		if all += more; more > most {
			top, most = r, more
		}
	}
	if most < nearly*all {
		return nil
	}
	return top
}

// moreCame reports whether more requests came behind a change than before.
func moreCame(came []float64, c changepoint.Change) bool {
	return mean(came[c.At:c.To]) > 1.25*mean(came[c.From:c.At])
}

// turnedOver reports whether as many requests ended before a change as ran then. Before that, a
// batch only fills up: how many run says how long ago it began, and not how long requests take.
func turnedOver(running, came []float64, c changepoint.Change) bool {
	began, ended := came[c.From:c.At], 0.0
	for _, n := range began {
		ended += n
	}
	ended += running[c.From] - running[c.At-1]
	return ended >= mean(running[c.From:c.At])
}

// suffer returns what requests pay for a change of how many run, and in what it shows: more of
// them wait, or their tokens take longer. Without either, there is no evidence.
func (l *Logged) suffer(ranks []*Rank, c changepoint.Change, longer float64) (cost float64, shows []finding.Evidence) {
	part := float64(c.To-c.At) / float64(l.Grid.N())
	if wait := l.added(ranks, series.Queued); wait != nil {
		if x, y := mean(wait[c.From:c.At]), mean(wait[c.At:c.To]); y >= 2*x+1 {
			cost, shows = part, append(shows, finding.Sentence("%s wait, %s before", words.ThreeDigits(y), words.ThreeDigits(x)))
		}
	}
	for _, r := range ranks {
		steps := l.stepTime(r)
		if x, y := middle(steps[c.From:c.At]), middle(steps[c.At:c.To]); y >= longer*x {
			cost = max(cost, part*(1-x/y))
			shows = append(shows, finding.Sentence("a token takes %s on %s, %s before", words.Nearly(int64(y*1e9)), r.Where.String(), words.Nearly(int64(x*1e9))))
		}
	}
	return cost, shows
}

// arrivals says whether more requests came when a queue grew.
func (l *Logged) arrivals(f *finding.Finding, came []float64, c changepoint.Change) {
	seconds := float64(l.Grid.Bucket) / 1e9
	x, y := mean(came[c.From:c.At])/seconds, mean(came[c.At:c.To])/seconds
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

// added adds up a metric over ranks, by bucket; nil where none has it.
func (l *Logged) added(ranks []*Rank, m series.MetricID) []float64 {
	var out []float64
	for _, r := range ranks {
		if !r.has(m) {
			continue
		}
		if out == nil {
			out = make([]float64, l.Grid.N())
		}
		for b, v := range l.curve(r, m) {
			if !math.IsNaN(v) {
				out[b] += v
			}
		}
	}
	return out
}
