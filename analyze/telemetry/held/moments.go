package held

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Subkinds of findings about limits.
const (
	KVCache = "KV cache"
	// OnTheWay is a KV cache most of which is kept for requests between their prefill and their decode server.
	OnTheWay = "KV caches on their way"
	Batch    = "running requests"
	Prefill  = "prefill"
	Blocked  = "blocked"
)

// LimitSubkinds are the subkinds of findings about limits.
var LimitSubkinds = []string{KVCache, OnTheWay, Batch, Prefill, Blocked}

// A moment is the state of a rank in a line or a scrape: the usage of its fullest pool, in %, and the number of
// waiting requests.
type moment struct {
	at          trace.Time
	full, waits float64
}

// momentsOf returns the moments of a rank that have both values, sorted by time.
func momentsOf(l *telemetry.Logged, r *telemetry.Rank) []moment {
	by := map[trace.Time]moment{}
	for _, k := range l.SeriesOf(r.Place) {
		s := &l.Set.List[k]
		if s.Metric != series.KVUsage && s.Metric != series.Queued {
			continue
		}
		for x := range l.Set.Each(k) {
			if !l.Opt.Inside(x.Time) {
				continue
			}
			m, ok := by[x.Time]
			if !ok {
				m = moment{at: x.Time, full: -1, waits: -1}
			}
			if s.Metric == series.KVUsage {
				m.full = max(m.full, x.Value)
			} else {
				m.waits = max(m.waits, x.Value)
			}
			by[x.Time] = m
		}
	}
	list := slices.SortedFunc(maps.Values(by), func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return slices.DeleteFunc(list, func(m moment) bool { return m.full < 0 || m.waits < 0 })
}

// AtLast finds a KV cache that is full while requests wait, at the last of few moments, often a single scrape. The
// finding describes that moment and has no cost. It begins when requests began to wait if the cache was full in at
// least half of the moments since, or else when it became full.
func AtLast(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	list := momentsOf(l, r)
	last := len(list) - 1
	isFull := func(m moment) bool { return m.full >= telemetry.Full }
	if last < 0 || !isFull(list[last]) || list[last].waits < 1 {
		return f, false
	}
	from, n, unbroken := last, 1, true
	for k, full := last-1, 1; k >= 0 && list[k].waits >= 1; k-- {
		if !isFull(list[k]) {
			unbroken = false
			continue
		}
		if full++; unbroken || 2*full >= last-k+1 {
			from, n = k, full
		}
	}
	since, most := list[from].at, slices.MaxFunc(list[from:], func(a, b moment) int { return cmp.Compare(a.full, b.full) }).full
	f = finding.Finding{Subkind: KVCache, At: r.Where, Since: since, Severity: finding.Warning, Confidence: finding.Likely, Metric: finding.Metric{Name: "KV cache in use", Unit: table.Share, Before: math.NaN(), After: most / 100}}
	f.Text = fmt.Sprintf("the %s of %s is full (%s %%) while %s, at %s", r.Pool(), r.Where.String(), words.InPercent(most/100), whoWait(list[from].waits), words.TimeOfDay(since))
	if until := list[last].at; until > since {
		of := "lines"
		if r.Scraped {
			of = "scrapes"
		}
		f.Text = fmt.Sprintf("the %s of %s is full (%s %% at most) while %s at %s and %.0f at %s, in %d of its last %d %s", r.Pool(), r.Where.String(), words.InPercent(most/100),
			whoWait(list[from].waits), words.TimeOfDay(since), list[last].waits, words.TimeOfDay(until), n, last-from+1, of)
	}
	for k := range l.Set.List {
		s := &l.Set.List[k]
		if l.Set.Places[s.Place].Server != r.Server || !slices.ContainsFunc(ThrownOut, func(name string) bool { return strings.HasSuffix(l.Set.Metric(s.Metric).Name, name) }) {
			continue
		}
		for x := range l.Set.Each(k) {
			if x.Value > 0 {
				f.Evidence = append(f.Evidence, finding.Sentence("it has preempted requests %.0f times since it was started", x.Value))
			}
			break
		}
	}
	f.Evidence = append(f.Evidence, KeptFor(r)...)
	f.Evidence = append(f.Evidence, finding.Sentence("there are too few samples to say what it costs"))
	return f, true
}

// KeptFor mentions requests that keep their part of a prefill server's KV cache although their prompts are computed.
func KeptFor(r *telemetry.Rank) (list []finding.Evidence) {
	if n := r.Most(series.Sending); n >= 1 && r.Where.Role == request.Prefill {
		list = append(list, finding.Sentence("up to %.0f prefilled requests keep their part of it until it is sent to their decode server", n))
	}
	return list
}

// A said is the values in a line of a rank.
type said struct {
	at              trace.Time
	waits, runs     float64
	rate            float64 // of prompts, in tokens/s; NaN if unknown
	batch, takes    float64 // prompt tokens in its batch, and requests taken in; 0 if the line is about several batches
	prompts, tokens bool    // it computes prompts, and generates tokens
	whole           bool    // runs is the size of the batch, not the number at some moment
}

// saidBy returns the lines of a rank that are complete: the last one may be cut off.
func saidBy(l *telemetry.Logged, r *telemetry.Rank) (list []said) {
	var x telemetry.LoggedLine
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		v := &x.Values
		prefill := x.Has(telemetry.NewTokensOf) && x.Has(telemetry.NewSeqsOf)
		if !x.Has(telemetry.QueuedOf) || !x.Has(telemetry.RunningOf) || !x.Has(telemetry.RateOf) && !prefill {
			continue
		}
		s := said{at: x.At, waits: v[telemetry.QueuedOf], runs: v[telemetry.RunningOf], rate: v[telemetry.PrefillRateOf], prompts: v[telemetry.PrefillRateOf] > 0, tokens: v[telemetry.RateOf] > 0}
		if prefill { // a line of SGLang, whose count of running requests excludes the new ones
			s.runs, s.prompts, s.whole, s.batch = s.runs+v[telemetry.NewSeqsOf], true, true, v[telemetry.NewTokensOf]
			s.takes = v[telemetry.NewSeqsOf]
		}
		list = append(list, s)
	}
	return list
}

// Waiting finds requests that wait in all of the last lines of a rank, at least half of its lines, and what keeps
// them out if the lines show it: a batch at its largest size, prompts that take all of its time, or that no request
// is taken in.
func Waiting(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	const least = 3 // lines, or two of batches that each take in a small part of the queue
	lines := saidBy(l, r)
	from := len(lines)
	for from > 0 && lines[from-1].waits >= 1 {
		from--
	}
	if n, all := len(lines)-from, len(lines); 2*n < all || n < least && (n < 2 || slices.ContainsFunc(lines[from:], takesMuch)) {
		return f, false
	}
	w := wait{r, lines[from:]}
	switch n := atMost(w.lines); {
	case isBlocked(w.lines):
		return w.whileOthersRun(), true
	case takesNone(w.lines) > 0:
		return w.whileNoneRuns(), true
	case r.Most(series.KVUsage) >= telemetry.Full:
	case n >= least && !areFull(w.lines):
		return w.forTheBatch(n), true
	case isCrowded(w.lines, r.Where.Role == request.Prefill):
		return w.forPrefill(), true
	}
	return f, false
}

// A wait is consecutive lines of a rank in all of which requests wait.
type wait struct {
	r     *telemetry.Rank
	lines []said
}

// finding makes a finding of the wait. Its evidence is more, and the usage of the KV cache.
func (w *wait) finding(subkind, text string, more ...finding.Evidence) finding.Finding {
	first, last := &w.lines[0], &w.lines[len(w.lines)-1]
	f := finding.Finding{Subkind: subkind, Text: text, At: w.r.Where, Since: first.at, Until: last.at, Severity: finding.Warning, Confidence: finding.Likely, Evidence: more,
		Metric: finding.Metric{Name: "requests that wait", Before: math.NaN(), After: last.waits}}
	if full := w.r.Most(series.KVUsage); !math.IsNaN(full) {
		f.Evidence = append(f.Evidence, finding.Sentence("its %s is %s %% full at most", w.r.Pool(), words.InPercent(full/100)))
	}
	return f
}

// whileOthersRun makes the finding that no waiting request is taken in while others run.
func (w *wait) whileOthersRun() finding.Finding {
	first, last := &w.lines[0], &w.lines[len(w.lines)-1]
	f := w.finding(Blocked, fmt.Sprintf("%s wait on %s from %s to %s, and none of them is taken in, while %s", words.Counted(int(first.waits), "request"), w.r.Where.String(),
		words.TimeOfDay(first.at), words.TimeOfDay(last.at), manyRun(int(first.runs))))
	f.Confidence, f.Until, f.Metric.After = finding.Certain, 0, first.waits
	f.Evidence = []finding.Evidence{finding.Sentence("none of its %d lines has a prompt token", len(w.lines))}
	if full := w.r.Most(series.KVUsage); !math.IsNaN(full) {
		f.Evidence = append(f.Evidence, finding.Sentence("its %s is %s %% full: the waiting requests do not fit beside the running ones, or a limit on running requests keeps them out", w.r.Pool(), words.InPercent(full/100)))
	}
	return f
}

// whileNoneRuns makes the finding that no waiting request is taken in although the rank is idle.
func (w *wait) whileNoneRuns() finding.Finding {
	idle := w.lines[len(w.lines)-takesNone(w.lines):]
	last := &idle[len(idle)-1]
	f := w.finding(Blocked, fmt.Sprintf("%.0f requests wait on %s at %s, and none of them is taken in, although none runs since %s", last.waits, w.r.Where.String(), words.TimeOfDay(last.at), words.TimeOfDay(idle[0].at)),
		finding.Sentence("none of its last %d lines has a token", len(idle)), finding.Sentence("requests that wait for their KV cache from another server look the same"))
	f.Since, f.Until = idle[0].at, 0
	return f
}

// forTheBatch makes the finding that requests wait for places in a batch, which each of n prefill batches fills up.
func (w *wait) forTheBatch(n int) finding.Finding {
	first, last := &w.lines[0], &w.lines[len(w.lines)-1]
	return w.finding(Batch, fmt.Sprintf("%s is stuck at %.0f running requests (max running requests?): each of its %d prefill batches from %s on brings it to that many, while %.0f requests wait at %s and %.0f at %s", w.r.Where.String(), mostRun(w.lines),
		n, words.TimeOfDay(first.at), first.waits, words.TimeOfDay(first.at), last.waits, words.TimeOfDay(last.at)))
}

// forPrefill makes the finding that requests wait for the prefill of prompts before them.
func (w *wait) forPrefill() finding.Finding {
	first, last, at := &w.lines[0], &w.lines[len(w.lines)-1], w.r.Where
	text := fmt.Sprintf("%s is prefill-bound: %s wait at %s and %.0f at %s", at.String(), words.Counted(int(first.waits), "request"), words.TimeOfDay(first.at), last.waits, words.TimeOfDay(last.at))
	slowest := math.Inf(1)
	for i := range w.lines {
		slowest = min(slowest, w.lines[i].rate)
	}
	if slowest > 0 && !math.IsInf(slowest, 0) {
		text += fmt.Sprintf(", while it computes %s prompt tokens a second or more", words.Thousands(int64(slowest)))
	}
	var why []finding.Evidence
	switch {
	case areFull(w.lines):
		why = append(why, finding.Sentence("each of its %d batches has %s prompt tokens: no more fit in", len(w.lines), words.Thousands(int64(first.batch))))
	case at.Role != request.Prefill:
		why = append(why, finding.Sentence("%.0f run in the first of its %d lines, and %.0f in the last one: no limit on running requests keeps the others out", first.runs, len(w.lines), last.runs))
	}
	return w.finding(Prefill, text, why...)
}

// takesMuch reports whether a few more batches would take in all that waits, or the size of batches is unknown.
func takesMuch(x said) bool {
	const few = 4
	return x.takes == 0 || x.waits < few*x.takes
}

// isBlocked reports whether no waiting request is taken in: no line has a prompt token, while the same number run in
// each, and generate tokens.
func isBlocked(lines []said) bool {
	return lines[0].runs >= 1 && !slices.ContainsFunc(lines, func(x said) bool {
		return x.prompts || !x.tokens || x.runs != lines[0].runs || x.waits < lines[0].waits
	})
}

// takesNone returns the number of lines at the end in which nothing runs and no token is computed while requests
// wait. It returns 0 for a single line, which may be about a moment only. A server that does not log while idle has
// no such lines.
func takesNone(lines []said) (n int) {
	const least = 2
	for n < len(lines) && func(x *said) bool { return x.runs == 0 && !x.prompts && !x.tokens }(&lines[len(lines)-1-n]) {
		n++
	}
	if n < least {
		return 0
	}
	return n
}

// areFull reports whether all lines are about batches of prompts of the same, largest size, so that each may be a
// chunk of the same long prompt. With SGLang's default chunk sizes, that is a multiple of 1,024; other equal sizes
// come from prompts of equal length, as in benchmarks.
func areFull(lines []said) bool {
	const chunk = 1024 // tokens
	most := lines[0].batch
	return most > chunk && math.Mod(most, chunk) == 0 && !slices.ContainsFunc(lines, func(x said) bool { return x.batch != most })
}

// atMost returns the number of prefill lines if the batch of each brings the number of running requests to the same,
// largest value; 0 if not.
func atMost(lines []said) (n int) {
	most := mostRun(lines)
	for i := range lines {
		if x := &lines[i]; x.whole && x.runs < most {
			return 0
		} else if x.whole {
			n++
		}
	}
	return n
}

func mostRun(lines []said) (most float64) {
	for i := range lines {
		most = max(most, lines[i].runs)
	}
	return most
}

// isCrowded reports whether a rank computes prompts in all lines and no limit on running requests keeps the others
// out, because its batches are full, or more run at last than ever before. On a prefill server, the number running
// does not matter.
func isCrowded(lines []said, prefills bool) bool {
	last := len(lines) - 1
	return !slices.ContainsFunc(lines, func(x said) bool { return !x.prompts }) && (prefills || areFull(lines) || lines[last].runs > mostRun(lines[:last]) &&
		slices.IsSortedFunc(lines, func(a, b said) int { return cmp.Compare(a.runs, b.runs) }))
}

// ManyWait finds a server on which several times as many requests wait as run, from the last of few scrapes: the
// running requests have to end that many times before the last waiting one is taken in.
func ManyWait(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	const times, deviations = 4, 6 // of requests that come at random
	running, list := r.Points[series.Running], momentsOf(l, r)
	if !r.Scraped || running == nil || len(list) == 0 {
		return f, false
	}
	last := list[len(list)-1]
	p := running[l.Grid.Of(last.at)]
	runs := p.Most
	if p.N == 0 || runs < 1 || last.waits < times*runs+deviations*math.Sqrt(runs+1) {
		return f, false
	}
	f = finding.Finding{Subkind: Batch, At: r.Where, Since: last.at, Severity: finding.Warning, Confidence: finding.Likely, Metric: finding.Metric{Name: "requests that wait", Before: math.NaN(), After: last.waits}}
	f.Text = fmt.Sprintf("%s requests wait on %s at %s while %s: as many as run must end %.0f times before the last of them is taken in", words.Thousands(int64(last.waits)), r.Where.String(), words.TimeOfDay(last.at), manyRun(int(runs)), last.waits/runs)
	f.Evidence = append(f.Evidence, finding.Sentence("its %s is %s %% full: that does not keep them out, but a limit of running requests, or prompts that take all of its time", r.Pool(), words.InPercent(last.full/100)),
		finding.Sentence("there are too few samples to say what it costs"))
	return f, true
}

// whoWait says how many requests wait.
func whoWait(n float64) string {
	if n == 1 {
		return "1 request waits"
	}
	return fmt.Sprintf("%.0f requests wait", n)
}

// manyRun says how many requests run.
func manyRun(n int) string {
	if n == 1 {
		return "1 runs"
	}
	return fmt.Sprintf("%d run", n)
}
