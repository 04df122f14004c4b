package failed

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// linesOfVLLM returns the lines of a rank; none where one says less than others and is not the last one, which may be cut off.
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

// A still is a time in which lines of vLLM say that requests are in the batch, and that no token was computed of any.
type still struct {
	from, to        trace.Time // of the last line with tokens, or when the time began that the first one is of; and of the last one without, or of what else the log says behind it
	lines           int
	running, queued float64
	// sure tells that no prompt that takes long looks the same: as many requests are there as when tokens came.
	sure, goesOn bool
}

// long is how long lines without tokens may last, of at least [fewest] lines, until a server likely stands still: most prompts take less.
const long = trace.Time(30e9)

// few is how many lines without tokens say that a server stands still, and fewest how many say so of the time before each.
const few, fewest = 4, 3

// stills returns the longest such time of a rank. Since its V1, an idle vLLM logs one line without tokens, and then none, and
// does not know that it is not idle: until is when its log ends.
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
	for k := 0; k < len(lines); k++ {
		if !stands(&lines[k].Values) {
			continue
		}
		before, first := &telemetry.LoggedLine{At: lines[0].At - usual}, k // a line is of the time since the one before
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
		if y.sure = steady && y.lines >= few; y.to-y.from > x.to-x.from {
			x = y
		}
	}
	return x
}

// standsStill finds a vLLM that computes nothing although requests are in its batch.
func (x *ending) standsStill(l *telemetry.Logged) (f finding.Finding, ok bool) {
	if l.Set.Servers[x.server].Engine != "vLLM" {
		return f, false
	}
	for _, r := range x.ranks {
		y := stills(l, r, x.last)
		if y.to-y.from <= together && (y.lines < fewest || y.to-y.from < long) || x.told(l, y.from) || y.to-y.from <= f.Until-f.Since {
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
		} else {
			f.Evidence = append(f.Evidence, finding.Sentence("a prompt that takes so long to compute would look the same"))
		}
		ok = true
	}
	return f, ok
}
