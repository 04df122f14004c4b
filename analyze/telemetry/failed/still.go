package failed

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// linesOfVLLM returns the lines of a rank, or nil if a line is incomplete that is not the last one, which may be cut
// off.
func linesOfVLLM(l *telemetry.Logged, r *telemetry.Rank) (list []telemetry.LoggedLine) {
	var x telemetry.LoggedLine
	whole := true
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		if !whole {
			return nil
		}
		if whole = x.Has(telemetry.RateOf) && x.Has(telemetry.PrefillRateOf) && x.Has(telemetry.RunningOf) && x.Has(telemetry.QueuedOf); whole {
			list = append(list, x)
		}
	}
	return list
}

// A still is a period in which vLLM logs requests in the batch, but computes no token.
type still struct {
	from, to        trace.Time // from the last line with tokens, or when the period of the first line began; to the last line without tokens, or the last other line after it
	lines           int
	running, queued float64
	// sure says that a long prompt would not look the same, because the number of requests is the same as when tokens
	// were generated.
	sure, goesOn bool
	// paused says that it is short, but that nothing except a pause explains it on a server that decodes fast.
	paused bool
}

// long is the time without tokens, over at least [fewest] lines, from which a server has likely stalled, because most
// prompts take less.
const long = trace.Time(30e9)

// few is the number of lines without tokens that show that a server has stalled, and fewest the number that suffices
// because each covers the time before it.
const few, fewest = 4, 3

// manyGiveUp is the number of requests whose clients do not all give up in the same second: then vLLM has nothing to
// do, and logs the number that ran before.
const manyGiveUp = 4

// stills returns the longest such period of a rank. Since V1, an idle vLLM logs one line without tokens and then
// none, even if it only appears idle. until is when its log ends.
func stills(l *telemetry.Logged, r *telemetry.Rank, until trace.Time) (x still) {
	lines := linesOfVLLM(l, r)
	if len(lines) < 2 {
		return x
	}
	var gaps []float64
	for k := range lines[1:] {
		gaps = append(gaps, float64(lines[k+1].At-lines[k].At))
	}
	usual := trace.Time(telemetry.Middle(gaps))
	stands := func(v *telemetry.LineValues) bool {
		return v[telemetry.RateOf] == 0 && v[telemetry.PrefillRateOf] == 0 && v[telemetry.RunningOf] >= 1
	}
	stood := order.Count(lines, func(x telemetry.LoggedLine) bool { return stands(&x.Values) })
	for k := 0; k < len(lines); k++ {
		if !stands(&lines[k].Values) {
			continue
		}
		before, first := &telemetry.LoggedLine{At: lines[0].At - usual}, k // a line covers the time since the previous one
		if k > 0 {
			before = &lines[k-1]
		}
		steady := before.Values[telemetry.RateOf] > 0
		for ; k < len(lines) && stands(&lines[k].Values); k++ {
			steady = steady && lines[k].Values[telemetry.RunningOf] == before.Values[telemetry.RunningOf]
		}
		last := &lines[k-1]
		y := still{from: before.At, to: until, lines: k - first, running: last.Values[telemetry.RunningOf], queued: last.Values[telemetry.QueuedOf], goesOn: k < len(lines)}
		if y.goesOn {
			y.to = max(last.At, lines[k].At-usual)
		}
		y.paused = y.goesOn && steady && y.running >= manyGiveUp && 20*stood <= len(lines) && y.to-y.from <= trace.Time(y.lines+1)*usual && lines[k].Values[telemetry.RateOf] > 0
		if y.sure = steady && y.lines >= few; y.to-y.from > x.to-x.from {
			x = y
		}
	}
	return x
}

// standsStill finds a vLLM server that computes nothing although requests are in its batch.
func (x *ending) standsStill(l *telemetry.Logged) (f finding.Finding, ok bool) {
	if l.Set.Servers[x.server].Engine != "vLLM" {
		return f, false
	}
	for _, r := range x.ranks {
		y := stills(l, r, x.last)
		short := y.to-y.from <= together && (y.lines < fewest || y.to-y.from < long)
		if short && !y.paused || x.told(l, y.from) || y.to-y.from <= f.Until-f.Since {
			continue
		}
		from, to, _ := l.Set.Bounds()
		f = finding.Finding{Subkind: Hang, At: r.Where, Since: y.from, Until: y.to, Severity: finding.Critical, Confidence: finding.Likely, Cost: share(y.to-y.from, to-from, len(l.Ranks)),
			Metric: finding.Metric{Name: "requests that run", Before: math.NaN(), After: y.running}}
		verb, until := "has stood still since", "until "+words.TimeOfDay(y.to)+", when the log ends"
		if y.goesOn {
			verb, until = "stood still from", "until "+words.TimeOfDay(y.to)
		}
		f.Text = fmt.Sprintf("%s %s %s, with %s in its batch and %.0f waiting: %s, it computes no token", r.Where.String(), verb, words.TimeOfDay(y.from), words.Counted(int(y.running), "request"), y.queued, until)
		if f.Evidence = nil; y.sure {
			f.Confidence = finding.Certain
			f.Evidence = append(f.Evidence, finding.Sentence("%s have no tokens, and as many requests as when tokens came", words.Counted(y.lines, "line")))
		} else if short {
			f.Severity = finding.Warning
			f.Evidence = append(f.Evidence, finding.Sentence("%s between others with many, and as many requests as in the one before", words.Counted(y.lines, "line without a token")))
		} else {
			f.Evidence = append(f.Evidence, finding.Sentence("a prompt that takes so long to compute would look the same"))
		}
		ok = true
	}
	return f, ok
}
