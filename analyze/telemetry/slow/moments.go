package slow

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
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A moment is what a line or a scrape tells of a rank: how full its fullest pool is, in %, and how many requests wait.
type moment struct {
	at          trace.Time
	full, waits float64
}

// momentsOf returns the moments of a rank, in their order, that tell both.
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

// atLast finds a KV cache that is full while requests wait, at the last of the few moments that there are, often one scrape: what is so then,
// and not what it costs. It is so since they wait, where it was full in half of the moments since, and else since it has been full.
func atLast(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
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
	f = finding.Finding{Subkind: KVCache, At: r.Where, Since: since, Confidence: finding.Likely, Metric: finding.Metric{Name: "KV cache in use", Unit: table.Share, Before: math.NaN(), After: most / 100}}
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
		if l.Set.Places[s.Place].Server != r.Server || !slices.ContainsFunc(held.ThrownOut, func(name string) bool { return strings.HasSuffix(l.Set.Metric(s.Metric).Name, name) }) {
			continue
		}
		for x := range l.Set.Each(k) {
			if x.Value > 0 {
				f.Evidence = append(f.Evidence, finding.Sentence("it has thrown requests out of it %.0f times since it was started", x.Value))
			}
			break
		}
	}
	f.Evidence = append(f.Evidence, keptFor(r)...)
	f.Evidence = append(f.Evidence, finding.Sentence("there are too few samples to say what it costs"))
	return f, true
}

// A said is what a line tells of a rank, behind what it tells of.
type said struct {
	at              trace.Time
	waits, runs     float64
	rate            float64 // of prompts, in tokens a second; NaN is not told
	batch, takes    float64 // tokens and requests of prompts in its batch, 0 where it is of several
	prompts, tokens bool    // that it computes, and generates
	whole           bool    // runs is how many the batch has, and not how many it has at some moment
}

// saidBy returns what the lines of a rank tell that have all of it: the last one may be cut off.
func saidBy(l *telemetry.Logged, r *telemetry.Rank) (list []said) {
	var x telemetry.LoggedLine
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		v := &x.Values
		prefill := x.Has(telemetry.NewTokensOf) && x.Has(telemetry.NewSeqsOf)
		if !x.Has(telemetry.QueuedOf) || !x.Has(telemetry.RunningOf) || !x.Has(telemetry.RateOf) && !prefill {
			continue
		}
		s := said{at: x.At, waits: v[telemetry.QueuedOf], runs: v[telemetry.RunningOf], rate: v[telemetry.PrefillRateOf], prompts: v[telemetry.PrefillRateOf] > 0, tokens: v[telemetry.RateOf] > 0}
		if prefill { // of SGLang, which tells what ran before
			s.runs, s.prompts, s.whole, s.batch = s.runs+v[telemetry.NewSeqsOf], true, true, v[telemetry.NewTokensOf]
			s.takes = v[telemetry.NewSeqsOf]
		}
		list = append(list, s)
	}
	return list
}

// waiting finds requests that wait in all of the last lines of a rank, which are half of them or more, and what keeps them out, as far as these
// tell: a batch that is as large as it gets, prompts that take all of its time, or that none is taken in.
func waiting(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	const least = 3 // lines, or two of batches that each take in a small part of what waits
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

// A wait is some lines of a rank in a row in all of which requests wait.
type wait struct {
	r     *telemetry.Rank
	lines []said
}

// finding is about the wait; more are its evidence, and how full the KV cache is.
func (w *wait) finding(subkind, text string, more ...finding.Evidence) finding.Finding {
	first, last := &w.lines[0], &w.lines[len(w.lines)-1]
	f := finding.Finding{Subkind: subkind, Text: text, At: w.r.Where, Since: first.at, Until: last.at, Severity: finding.Warning, Confidence: finding.Likely, Evidence: more,
		Metric: finding.Metric{Name: "requests that wait", Before: math.NaN(), After: last.waits}}
	if full := w.r.Most(series.KVUsage); !math.IsNaN(full) {
		f.Evidence = append(f.Evidence, finding.Sentence("its %s is %s %% full at most", w.r.Pool(), words.InPercent(full/100)))
	}
	return f
}

// whileOthersRun is about requests of which none is taken in.
func (w *wait) whileOthersRun() finding.Finding {
	first, last := &w.lines[0], &w.lines[len(w.lines)-1]
	f := w.finding(blockedSubkind, fmt.Sprintf("%s wait on %s from %s to %s, and none of them is taken in, while %s", words.Counted(int(first.waits), "request"), w.r.Where.String(),
		words.TimeOfDay(first.at), words.TimeOfDay(last.at), manyRun(int(first.runs))))
	f.Confidence, f.Until, f.Metric.After = finding.Certain, 0, first.waits
	f.Evidence = []finding.Evidence{finding.Sentence("none of its %d lines has a prompt token", len(w.lines))}
	if full := w.r.Most(series.KVUsage); !math.IsNaN(full) {
		f.Evidence = append(f.Evidence, finding.Sentence("its %s is %s %% full: the waiting requests do not fit beside the running ones, or a limit on running requests keeps them out", w.r.Pool(), words.InPercent(full/100)))
	}
	return f
}

// whileNoneRuns is about requests of which none is taken in although there is nothing else to do.
func (w *wait) whileNoneRuns() finding.Finding {
	idle := w.lines[len(w.lines)-takesNone(w.lines):]
	last := &idle[len(idle)-1]
	f := w.finding(blockedSubkind, fmt.Sprintf("%.0f requests wait on %s at %s, and none of them is taken in, although none runs since %s", last.waits, w.r.Where.String(), words.TimeOfDay(last.at), words.TimeOfDay(idle[0].at)),
		finding.Sentence("none of its last %d lines has a token", len(idle)), finding.Sentence("requests that wait for their KV cache from another server look the same"))
	f.Since, f.Until = idle[0].at, 0
	return f
}

// forTheBatch is about requests that wait until others leave a batch, which n batches of prefills fill up.
func (w *wait) forTheBatch(n int) finding.Finding {
	first, last := &w.lines[0], &w.lines[len(w.lines)-1]
	return w.finding(Batch, fmt.Sprintf("running is stuck at %.0f on %s (max running requests?): each of its %d prefill batches from %s on brings it to that many, while %.0f requests wait at %s and %.0f at %s", mostRun(w.lines), w.r.Where.String(),
		n, words.TimeOfDay(first.at), first.waits, words.TimeOfDay(first.at), last.waits, words.TimeOfDay(last.at)))
}

// forPrefill is about requests that wait until prompts before them are computed.
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
	return w.finding(prefillSubkind, text, why...)
}

// takesMuch reports whether few more batches take in all that waits, or nobody knows.
func takesMuch(x said) bool {
	const few = 4
	return x.takes == 0 || x.waits < few*x.takes
}

// isBlocked reports whether none of what waits is taken in: no line has a prompt token, as many run in each, and they get tokens.
func isBlocked(lines []said) bool {
	return lines[0].runs >= 1 && !slices.ContainsFunc(lines, func(x said) bool {
		return x.prompts || !x.tokens || x.runs != lines[0].runs || x.waits < lines[0].waits
	})
}

// takesNone is how many lines at the end tell that nothing runs, and no token is computed, while requests wait; 0 of one line, which may be of a
// moment. A server that logs no line while it has nothing to do has none.
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

// areFull reports whether all lines are of batches of prompts with as many tokens as fit in: each may be a piece of the same long prompt. That many
// are a multiple of 1,024 with SGLang's own sizes of a chunk; as many in each otherwise are of prompts of one length, as benchmarks have them.
func areFull(lines []said) bool {
	const chunk = 1024 // tokens
	most := lines[0].batch
	return most > chunk && math.Mod(most, chunk) == 0 && !slices.ContainsFunc(lines, func(x said) bool { return x.batch != most })
}

// atMost is how many lines of prompts tell that their batch makes as many run as all others do, and as run at most; 0 is that some do not.
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

// isCrowded reports whether a rank computes prompts all the time, in batches that are full, or more run at last than ever before, so that no limit
// keeps out what waits. How many run on a server that only prefills says nothing.
func isCrowded(lines []said, prefills bool) bool {
	last := len(lines) - 1
	return !slices.ContainsFunc(lines, func(x said) bool { return !x.prompts }) && (prefills || areFull(lines) || lines[last].runs > mostRun(lines[:last]) &&
		slices.IsSortedFunc(lines, func(a, b said) int { return cmp.Compare(a.runs, b.runs) }))
}

// manyWait finds a server with several times as many requests that wait as run, by the last of few scrapes: those that run must end as often before
// the last of the others is taken in.
func manyWait(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	const times, deviations = 4, 6 // of requests that come and go by themselves
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
	f = finding.Finding{Subkind: Batch, At: r.Where, Since: last.at, Confidence: finding.Likely, Metric: finding.Metric{Name: "requests that wait", Before: math.NaN(), After: last.waits}}
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

// risesOf finds queues of which each of few lines has more than the one before.
func risesOf(l *telemetry.Logged) (out []finding.Finding) {
	const least = 5 // lines, which are in this order by chance in less than one of 100 cases
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
