package telemetry

import (
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Stretch is the work of a rank from one decode line to the next: a fixed number of steps.
type Stretch struct {
	At trace.Time // its end
	// Token is the time per token of a request, in s: running requests divided by tokens per second. It is the time
	// of a step and of the prefills between two steps, divided by the tokens that a step yields.
	Token float64
	// Accepted is the number of tokens that a step yields for each request, including accepted drafts; 1 if unknown.
	Accepted float64
	// Running is the mean number of requests in its batches, and KV of thousands of tokens.
	Running, KV float64
	// Prompts is the number of thousands of prompt tokens computed between its steps, and Prefills the number of
	// batches for that. If lines only have rates, both are per second.
	Prompts, Prefills float64
}

// maxStretches is the largest number of stretches kept per rank. In longer logs, adjacent stretches are merged.
const maxStretches = 1 << 16

// stretches returns the stretches of a rank in order, without those in which it may have been idle: idle time lowers
// the throughput that its lines report. n is the number before any were merged.
func (l *Logged) stretches(place int32) (list []Stretch, n int) {
	out := thinned{each: 1}
	var last, x LoggedLine
	var sum, running, prompts, prefills float64
	var ahead Stretch // the previous stretch: a prompt is logged when all of it is computed, which may have begun in the stretch before
	for lines := l.LinesOf(place); lines.Next(&x); {
		if x.Has(RunningOf) {
			sum, running = sum+x.Values[RunningOf], running+1
		}
		if x.Has(NewTokensOf) {
			prompts, prefills = prompts+x.Values[NewTokensOf]/1000, prefills+1
			if x.Values[RunningOf] == 0 {
				last.At = 0 // it had nothing to decode for an unknown time
			}
		}
		rate := x.Values[RateOf]
		if math.IsNaN(rate) {
			continue
		}
		if before, now := last.Values[RunningOf], x.Values[RunningOf]; last.At != 0 && before >= 1 && now >= 1 && rate > 0 {
			n++
			mean := (sum + before) / (running + 1)
			kv := x.Values[kvOf] / 1000
			if math.IsNaN(kv) {
				kv = 0
			}
			accepted := 1.0
			if x.Has(acceptedOf) {
				accepted = max(1, x.Values[acceptedOf])
			}
			if x.Has(PrefillRateOf) {
				prompts = x.Values[PrefillRateOf] / 1000
				ahead.Prompts = max(ahead.Prompts, prompts)
			}
			if ahead.At != 0 {
				out.add(ahead)
			}
			ahead = Stretch{x.At, mean / rate, accepted, mean, kv, prompts, prefills}
		}
		last, sum, running, prompts, prefills = x, 0, 0, 0, 0
	}
	if ahead.At != 0 {
		out.add(ahead)
	}
	return out.list, n
}

// scrapedStretches returns the stretches of a rank without lines, from scrapes, which repeat the last decode line. It
// leaves out scrapes with few requests or the same values as the one before, because part of that time may be idle.
// Scrapes don't count prompts.
func (l *Logged) scrapedStretches(place int32) []Stretch {
	const few = 4
	values := map[trace.Time]*[3]float64{} // running, throughput, tokens in the KV cache
	for i := range l.Set.List {
		s := &l.Set.List[i]
		k := slices.Index([]series.MetricID{series.Running, series.Generation, series.KVTokens}, s.Metric)
		if s.Place != place || s.Label != 0 || k < 0 {
			continue
		}
		for x := range l.Set.Each(i) {
			if x.Line() == 0 && l.Opt.Inside(x.Time) {
				order.Memo(values, x.Time, func() *[3]float64 { return &[3]float64{} })[k] = x.Value
			}
		}
	}
	out := thinned{each: 1}
	var last [3]float64
	for _, at := range slices.Sorted(maps.Keys(values)) {
		x := *values[at]
		if x[0] >= few && last[0] >= few && x[1] > 0 && x != last {
			out.add(Stretch{At: at, Token: x[0] / x[1], Accepted: 1, Running: x[0], KV: x[2] / 1000})
		}
		last = x
	}
	return out.list
}

// countedStretches returns the stretches of a rank from the histograms and counters of its own, if no throughput
// is reported: the sum of times between tokens is the sum of the times for which requests ran. Prompts are per
// second.
func (l *Logged) countedStretches(m Meter) []Stretch {
	const few = 1 // requests
	counted := func(name string) map[trace.Time]float64 {
		n := map[trace.Time]float64{}
		for _, x := range l.Intervals(m, name) {
			n[x.To] += x.N
		}
		return n
	}
	generated, prompts, cached := counted("generation_tokens_total"), counted("prompt_tokens_total"), counted("prefix_cache_hits_total")
	drafts, accepted := counted("spec_decode_num_drafts_total"), counted("spec_decode_num_accepted_tokens_total")
	out := thinned{each: 1}
	for _, x := range l.Scrapes(m, series.ITL).List {
		seconds := float64(x.To-x.From) / 1e9
		one := Stretch{At: x.From + (x.To-x.From)/2, Token: x.Took / generated[x.To], Accepted: 1, Running: x.Took / seconds, Prompts: max(0, prompts[x.To]-cached[x.To]) / 1000 / seconds}
		if drafts[x.To] > 0 {
			one.Accepted += accepted[x.To] / drafts[x.To]
		}
		if one.Running >= few && generated[x.To] > 0 {
			out.add(one)
		}
	}
	return out.list
}

// thinned is a list of at most [maxStretches] stretches. When it is full, adjacent pairs are replaced by their mean,
// and so are all later ones.
type thinned struct {
	list    []Stretch
	each, n int // number of stretches whose mean an element is, except for the last one, which is the mean of n
}

func (t *thinned) add(x Stretch) {
	if t.n > 0 && t.n < t.each {
		t.n++
		t.list[len(t.list)-1].join(&x, 1/float64(t.n))
		return
	}
	if len(t.list) == maxStretches {
		for i := range maxStretches / 2 {
			t.list[i] = t.list[2*i]
			t.list[i].join(&t.list[2*i+1], 0.5)
		}
		t.list, t.each = t.list[:maxStretches/2], 2*t.each
	}
	t.list, t.n = append(t.list, x), 1
}

// join makes x the mean of itself and a later stretch, which has the given weight in it.
func (x *Stretch) join(o *Stretch, part float64) {
	x.At = o.At
	for _, v := range [...][2]*float64{{&x.Token, &o.Token}, {&x.Accepted, &o.Accepted}, {&x.Running, &o.Running}, {&x.KV, &o.KV}, {&x.Prompts, &o.Prompts}, {&x.Prefills, &o.Prefills}} {
		*v[0] += part * (*v[1] - *v[0])
	}
}

// Values in the lines of batches from which stretches are computed.
const (
	RunningOf = iota
	RateOf
	kvOf
	NewTokensOf
	GraphedOf
	PrefillRateOf
	QueuedOf
	NewSeqsOf
	acceptedOf
	valuesOfLine
)

var MetricsOfLine = [valuesOfLine]series.MetricID{series.Running, series.Generation, series.KVTokens, series.NewTokens, series.Graphed, series.PrefillRate, series.Queued, series.NewSeqs, series.AcceptLength}

// LineValues are the values of a line, by index of MetricsOfLine; NaN if missing.
type LineValues [valuesOfLine]float64

// A LoggedLine is a line of a log with its values.
type LoggedLine struct {
	At     trace.Time
	number uint32
	Values LineValues
}

// Has reports whether the line has a value.
func (x *LoggedLine) Has(value int) bool { return !math.IsNaN(x.Values[value]) }

// loggedLines goes through the lines of a place, whose values are in several series.
type loggedLines struct {
	opt   Options
	parts []linePart
}

// A linePart is a series and its next sample.
type linePart struct {
	value int
	rest  series.Cursor
	next  series.Sample
	ok    bool
}

// LinesOf returns the lines of a place in the time window, in order.
func (l *Logged) LinesOf(place int32) *loggedLines {
	x := &loggedLines{opt: l.Opt}
	for _, i := range l.SeriesOf(place) {
		if value := slices.Index(MetricsOfLine[:], l.Set.List[i].Metric); value >= 0 {
			p := linePart{value: value, rest: l.Set.Walk(i)}
			x.advance(&p)
			x.parts = append(x.parts, p)
		}
	}
	return x
}

// advance moves to the next sample that comes from a line and is in the time window.
func (l *loggedLines) advance(p *linePart) {
	for {
		if p.next, p.ok = p.rest.Next(); !p.ok || p.next.Line() != 0 && l.opt.Inside(p.next.Time) {
			return
		}
	}
}

// Next reads the next line. It returns false after the last one.
func (l *loggedLines) Next(x *LoggedLine) bool {
	found := false
	for i := range l.parts {
		p := &l.parts[i]
		if p.ok && (!found || p.next.Time < x.At || p.next.Time == x.At && p.next.Line() < x.number) {
			x.At, x.number, found = p.next.Time, p.next.Line(), true
		}
	}
	for i := range x.Values {
		x.Values[i] = math.NaN()
	}
	for i := range l.parts {
		if p := &l.parts[i]; found && p.ok && p.next.Time == x.At && p.next.Line() == x.number {
			x.Values[p.value] = p.next.Value
			l.advance(p)
		}
	}
	return found
}
