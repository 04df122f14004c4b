package telemetry

import (
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Stretch is what a rank did from one decode line to the next one: as many steps as always.
type Stretch struct {
	At trace.Time // of its end
	// Token is how long a token of one request took, in s: running requests by tokens per second.
	// It is the time of a step, and of the prefills between two of them, by how many tokens a step gives.
	Token float64
	// Accepted is how many tokens a step gives each request, with drafts that it accepts; 1 where that is not told.
	Accepted float64
	// Running and KV are the requests and the thousands of tokens of its batches, on average.
	Running, KV float64
	// Prompts are the thousands of prompt tokens that were computed between its steps, and Prefills
	// in how many batches. Where lines tell only how many were computed a second, they are those.
	Prompts, Prefills float64
}

// maxStretches are kept of a rank: of longer logs, some that follow each other are one.
const maxStretches = 1 << 16

// stretches are those of a rank, in order, but for those in which it may have had nothing to do: how
// long it did not is part of what its line calls its throughput; n is how many there were.
func (l *Logged) stretches(place int32) (list []Stretch, n int) {
	out := thinned{each: 1}
	var last, x LoggedLine
	var sum, running, prompts, prefills float64
	var ahead Stretch // the last one: a prompt counts when all of it is computed, which may have begun in the stretch before
	for lines := l.LinesOf(place); lines.Next(&x); {
		if x.Has(RunningOf) {
			sum, running = sum+x.Values[RunningOf], running+1
		}
		if x.Has(NewTokensOf) {
			prompts, prefills = prompts+x.Values[NewTokensOf]/1000, prefills+1
			if x.Values[RunningOf] == 0 {
				last.At = 0 // it had nothing to decode, for who knows how long
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

// scrapedStretches are what scrapes tell of a rank of which there are no lines: each has the numbers of the last line of a
// decode batch. Where few requests run, or what they say is what the one before said, part of the time may be idle. Of prompts they
// do not tell.
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

// countedStretches are what the histograms and counters of a server of one rank tell between scrapes, where none says how fast tokens
// come: the time from token to token adds up to how long how many requests ran. Prompts are those of a second.
func (l *Logged) countedStretches(r *Rank) []Stretch {
	const few = 1 // requests
	counted := func(name string) map[trace.Time]float64 {
		n := map[trace.Time]float64{}
		for _, x := range l.Intervals(r.Server, name) {
			n[x.To] += x.N
		}
		return n
	}
	generated, prompts, cached := counted("generation_tokens_total"), counted("prompt_tokens_total"), counted("prefix_cache_hits_total")
	drafts, accepted := counted("spec_decode_num_drafts_total"), counted("spec_decode_num_accepted_tokens_total")
	out := thinned{each: 1}
	for _, x := range l.Scrapes(r.Server, series.ITL).List {
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

// thinned is a list of stretches that does not grow beyond [maxStretches]: then two that follow each other become
// one, their mean, and so do all that come later.
type thinned struct {
	list    []Stretch
	each, n int // stretches that one of the list is the mean of, but for the last one, which is of n
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

// join makes a stretch the mean of itself and a later one, which counts as a part of both.
func (x *Stretch) join(o *Stretch, part float64) {
	x.At = o.At
	for _, v := range [...][2]*float64{{&x.Token, &o.Token}, {&x.Accepted, &o.Accepted}, {&x.Running, &o.Running}, {&x.KV, &o.KV}, {&x.Prompts, &o.Prompts}, {&x.Prefills, &o.Prefills}} {
		*v[0] += part * (*v[1] - *v[0])
	}
}

// What lines of batches say that stretches are made of.
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

// LineValues are the values of the metrics of a line; NaN is what it does not say.
type LineValues [valuesOfLine]float64

// A LoggedLine is what a line says.
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

// A linePart is a series, and its next sample.
type linePart struct {
	value int
	rest  series.Cursor
	next  series.Sample
	ok    bool
}

// LinesOf returns the lines of a place that are in the window of time, in order.
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

// advance goes to the next sample that a line says and that is looked at.
func (l *loggedLines) advance(p *linePart) {
	for {
		if p.next, p.ok = p.rest.Next(); !p.ok || p.next.Line() != 0 && l.opt.Inside(p.next.Time) {
			return
		}
	}
}

// Next reads the next line; it returns false behind the last one.
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
