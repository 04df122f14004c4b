package held

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A pause is a time in which a rank logged no batch, although it had requests in its batch all along.
type pause struct {
	from, to trace.Time
	usual    int64   // ns that it usually takes
	running  float64 // number of requests held up
	// why is what the server reports that it did meanwhile; "" is nothing.
	why string
}

func (p *pause) lost() int64 { return int64(p.to-p.from) - p.usual }

// held returns the seconds for which it held up requests, all of them together.
func (p *pause) held() float64 { return float64(p.lost()) / 1e9 * p.running }

const (
	// fewTimes is the fewest intervals between lines that show what is usual.
	fewTimes = 20
	// noPause is longer than any client waits: a log with such a gap has two parts.
	noPause = trace.Time(24 * time.Hour)
	// longPause is the shortest pause, in ns, beyond the usual time and the precision of stamps.
	longPause = 3_000_000_000
	// longPrompts is the largest ratio of the time per token in a long prompt to that in others, because attention
	// covers all tokens before it.
	longPrompts = 3
	// manyTimes is how many times longer a pause must be than nearly all other intervals, because a larger batch
	// explains anything shorter.
	manyTimes = 5
)

// Pauses finds schedulers that stood still, and what they report that they did meanwhile. SGLang logs every prefill,
// and a line every 40 decode steps. So requests in a line that no prefill before it brought were already there at the
// previous line.
func Pauses(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged pauses", Of: "batch line", Needed: fewTimes}
	var out []finding.Finding
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if l.Set.Servers[r.Server].Engine != sglang || r.Where.Role == request.Decode || !r.Has(series.NewTokens) {
			continue // nothing says when requests come to a decode server
		}
		list, n := pauses(l, r)
		if check.N += n; len(list) > 0 {
			out = append(out, pausing(l, r, list))
		} else if f, ok := slowBatch(l, r); ok {
			out, check.Needed = append(out, f), min(check.Needed, check.N)
		}
	}
	if check.N == 0 {
		check.Reason = "no log of SGLang has lines of prefills and decoding"
	}
	return judge.Alike(out), check
}

// sglang is the name of the engine whose lines come as described at [Pauses].
const sglang = "SGLang"

// A gap is a long time between two lines that may be a pause.
type gap struct {
	pause
	after  int     // what came before it: 0 is a decode step, 1 a prefill
	tokens float64 // prompt tokens that may be computed in it: a batch is logged while the one before still runs
	steps  float64 // what the next decode line says that it decoded since the one before; 0 is unknown
}

// pauses returns the pauses of a rank. n is the number of intervals between lines that were examined.
func pauses(l *telemetry.Logged, r *telemetry.Rank) (list []pause, n int) {
	var long []gap        // candidates only, because there may be millions of lines
	var took [2][]float64 // by what came before
	var spent, prompts float64
	var before, last, x telemetry.LoggedLine
	halts := haltsOf(l, r)
	var decoded steps
	open := 0 // gaps from here on have no decode line behind them yet
	for lines := l.LinesOf(r.Place); lines.Next(&x); before, last = last, x {
		after, tokens := 0, 0.0
		if last.Has(telemetry.NewTokensOf) {
			after, tokens = 1, last.Values[telemetry.NewTokensOf]
			if before.Has(telemetry.NewTokensOf) {
				tokens += before.Values[telemetry.NewTokensOf]
			}
		}
		decodes, ran := x.Has(telemetry.RateOf), last.Values[telemetry.RunningOf] >= 1 || after == 1
		if last.At != 0 && x.Values[telemetry.RunningOf] >= 1 && (!decodes || ran) && x.At-last.At < noPause {
			p := pause{from: last.At, to: x.At, running: x.Values[telemetry.RunningOf]}
			p.why = meanwhile(l, halts, &p)
			if n++; int64(x.At-last.At) > longPause+l.Within || p.why != "" && int64(x.At-last.At) > l.Within {
				long = append(long, gap{pause: p, after: after, tokens: tokens})
			}
			took[after] = memory.Append(took[after], float64(x.At-last.At))
			if after == 1 {
				spent, prompts = spent+float64(x.At-last.At)+float64(l.Within), prompts+tokens
			}
		}
		if amount := decoded.next(&x); amount > 0 {
			for ; open < len(long); open++ {
				long[open].steps = amount
			}
		}
	}
	var usual, nearlyAll [2]float64 // 19 of 20 take at most that
	for after, others := range took {
		if len(others) >= fewTimes {
			usual[after] = order.SortedMedian(others) // which sorts them
			nearlyAll[after] = others[(len(others)-1)*19/20]
		}
	}
	for k := range long {
		p := &long[k]
		if len(took[p.after]) < fewTimes {
			continue
		}
		p.usual = int64(usual[p.after])
		if (p.saysWhy(l) || p.isLong(l, spent, prompts, nearlyAll[p.after]) && !decoded.goesOn(p.steps)) && !restarted(l, r, &p.pause) {
			list = append(list, p.pause)
		}
	}
	return list, n
}

// saysWhy reports whether a server says what it did in a gap, which is longer than usual.
func (p *gap) saysWhy(l *telemetry.Logged) bool {
	return p.why != "" && int64(p.to-p.from)-p.usual > l.Within
}

// isLong reports whether neither a gap's prompts nor a larger batch explain how long it is. All gaps after prefills
// take the time spent, with that many prompt tokens, and nearly all gaps take at most that of nearlyAll.
func (p *gap) isLong(l *telemetry.Logged, spent, prompts, nearlyAll float64) bool {
	most := p.usual
	if p.tokens > 0 && prompts > p.tokens { // the longest plausible time for that many tokens
		own := float64(p.to-p.from) + float64(l.Within)
		most = max(most, int64(longPrompts*(spent-own)/(prompts-p.tokens)*p.tokens))
	}
	lost := float64(p.to - p.from - trace.Time(l.Within))
	return int64(p.to-p.from)-most > longPause+l.Within && lost > manyTimes*nearlyAll
}

// slowBatch finds the slowest batch of prompts on a rank with too few lines to know what is usual. It must take very
// long: no chunk of SGLang's default size takes half a minute. The next line shows that its requests still run, and
// comes at most 40 decode steps later, whose pace other lines show.
func slowBatch(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	const long, most, steps = trace.Time(30e9), 16384, 40 // most is in tokens
	var last, x, slow telemetry.LoggedLine
	var paces []float64
	n, took := 0, trace.Time(0)
	for lines := l.LinesOf(r.Place); lines.Next(&x); last = x {
		running, rate := x.Values[telemetry.RunningOf], x.Values[telemetry.RateOf]
		if last.At == 0 || !x.Has(telemetry.RateOf) || !(running >= 1) {
			continue
		}
		if !last.Has(telemetry.NewTokensOf) {
			paces = append(paces, running/rate)
			continue
		}
		if n++; x.At-last.At > took && x.At-last.At < noPause && last.Values[telemetry.NewTokensOf] <= most && !restarted(l, r, &pause{from: last.At, to: x.At}) {
			slow, took = last, x.At-last.At
		}
	}
	decoding := steps * telemetry.Middle(paces) * 1e9 // NaN without any
	if n >= fewTimes || !(float64(took)-decoding >= float64(long)+float64(l.Within)) {
		return f, false
	}
	tokens := slow.Values[telemetry.NewTokensOf]
	f = finding.Finding{Subkind: finding.Stalls, At: r.Where, Since: slow.At, Until: slow.At + took, Confidence: finding.Likely, Cost: min(1, float64(took)/max(1, float64(l.To-l.From))/float64(len(l.Ranks))),
		Metric: finding.Metric{Name: "length of stalls", Unit: table.Duration, Before: math.NaN(), After: float64(took)}}
	f.Text = fmt.Sprintf("%s took %s to prefill a batch of %s tokens, from %s to %s", r.Where.String(), words.Nearly(int64(took)), words.Thousands(int64(tokens)), words.TimeOfDay(f.Since), words.TimeOfDay(f.Until))
	if why := meanwhile(l, haltsOf(l, r), &pause{from: f.Since, to: f.Until}); why != "" {
		f.Text += ": " + why
	} else {
		f.Evidence = append(f.Evidence, finding.Sentence("its log does not say why: a kernel that is compiled on first use looks like this, and so does a rank that the others wait for"))
	}
	return f, true
}

// haltsOf returns what the server of a rank reports that it did instead of running batches, in order of time.
func haltsOf(l *telemetry.Logged, r *telemetry.Rank) []series.Instant {
	list := order.Only(l.Set.Instants, func(e series.Instant) bool {
		return e.Kind == series.Halt && l.Set.Places[e.Place].Server == r.Server
	})
	slices.SortStableFunc(list, func(a, b series.Instant) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// meanwhile returns what a server reports that it did in a pause.
func meanwhile(l *telemetry.Logged, halts []series.Instant, p *pause) string {
	k, _ := slices.BinarySearchFunc(halts, p.from-trace.Time(l.Within), func(e series.Instant, at trace.Time) int { return cmp.Compare(e.Time, at) })
	if k < len(halts) && halts[k].Time <= p.to+trace.Time(l.Within) {
		return l.Set.Syms.Name(halts[k].Text)
	}
	return ""
}

// restarted reports whether a server restarted in a pause. There are other findings about that.
func restarted(l *telemetry.Logged, r *telemetry.Rank, p *pause) bool {
	return slices.ContainsFunc(l.Events, func(e telemetry.Event) bool {
		return (e.Kind == series.Ready || e.Kind == series.Starting || e.Kind == series.Crash) && e.Server == r.Server && e.First <= p.to && p.from <= e.Last
	})
}

// pausing makes the finding of a rank's pauses. The longest is named.
func pausing(l *telemetry.Logged, r *telemetry.Rank, list []pause) finding.Finding {
	long, lost, held, told := &list[0], int64(0), 0.0, 0
	for i := range list {
		p := &list[i]
		if lost, held = lost+p.lost(), held+p.held(); p.lost() > long.lost() {
			long = p
		}
		if p.why != "" {
			told++
		}
	}
	f := finding.Finding{Subkind: finding.Stalls, At: r.Where, Since: list[0].from, Until: list[len(list)-1].to, Confidence: finding.Likely, CostBasis: finding.RequestTime, Cost: l.PartOf(held),
		Metric: finding.Metric{Name: "length of stalls", Unit: table.Duration, Before: math.NaN(), After: float64(long.lost())}}
	requests := words.Counted(int(long.running), "request")
	f.Text = fmt.Sprintf("%s stood still for %s at %s, with %s in its batch", r.Where.String(), words.Nearly(long.lost()), words.TimeOfDay(long.from), requests)
	if len(list) > 1 {
		f.Text = fmt.Sprintf("%s stood still %d times between %s and %s, for %s in total, the longest %s (at %s), with %s in its batch", r.Where.String(), len(list), words.TimeOfDay(f.Since), words.TimeOfDay(f.Until),
			words.Nearly(lost), words.Nearly(long.lost()), words.TimeOfDay(long.from), requests)
	}
	if long.why != "" {
		f.Text += ": " + long.why
	}
	if told == len(list) {
		f.Confidence = finding.Certain
	}
	f.Brief = fmt.Sprintf("%s stood still for %s", r.Where.String(), words.Nearly(lost))
	usual := "less than a second"
	if long.usual > l.Within {
		usual = words.Nearly(long.usual)
	}
	f.Evidence = append(f.Evidence, finding.Sentence("it logged no batch from %s to %s, and no prefill explains the requests in its next line; its lines are usually %s apart", words.TimeOfDay(long.from), words.TimeOfDay(long.to), usual))
	if told < len(list) {
		f.Evidence = append(f.Evidence, finding.Sentence("its log does not say what it did in %d of %d: a missing part of the log would look the same", len(list)-told, len(list)))
	}
	return f
}
