package failed

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// saidByVLLM are what each of vLLM's lines says of a batch.
var saidByVLLM = [...]series.MetricID{series.Generation, series.PrefillRate, series.Running, series.Queued}

// A still is a time in which lines of vLLM say that requests are in the batch, and that no token was computed of any.
type still struct {
	from, to        trace.Time // of the last line with tokens, and of the last one without, or of what else the log says behind it
	lines           int
	running, queued float64
	// sure tells that no prompt that takes long looks the same: as many requests are there as when tokens came.
	sure, goesOn bool
}

// stills returns the longest such time of a rank. Since its V1, an idle vLLM logs one line without tokens, and then none, and
// does not know that it is not idle: until is when its log ends.
func stills(l *telemetry.Logged, r *telemetry.Rank, until trace.Time) (x still) {
	const few = 4
	var lines [len(saidByVLLM)][]series.Sample
	for i := range l.Set.List {
		s := &l.Set.List[i]
		k := slices.Index(saidByVLLM[:], s.Metric)
		if s.Place != r.Place || s.Label != 0 || k < 0 {
			continue
		}
		for p := range l.Set.Each(i) {
			if l.Opt.Inside(p.Time) {
				lines[k] = append(lines[k], p)
			}
		}
	}
	tokens, prompts, running, queued := lines[0], lines[1], lines[2], lines[3]
	n := len(tokens)
	if len(prompts) != n || len(running) != n || len(queued) != n || n < 2 {
		return x
	}
	var gaps []float64
	for k := 1; k < n; k++ {
		gaps = append(gaps, float64(tokens[k].Time-tokens[k-1].Time))
	}
	usual := trace.Time(telemetry.Middle(gaps))
	stands := func(k int) bool { return tokens[k].Value == 0 && prompts[k].Value == 0 && running[k].Value >= 1 }
	for k := 1; k < n; k++ {
		if !stands(k) {
			continue
		}
		first, steady := k, tokens[k-1].Value > 0
		for ; k < n && stands(k); k++ {
			steady = steady && running[k].Value == running[first-1].Value
		}
		y := still{from: tokens[first-1].Time, to: until, lines: k - first, running: running[k-1].Value, queued: queued[k-1].Value, goesOn: k < n}
		if y.goesOn {
			y.to = max(tokens[k-1].Time, tokens[k].Time-usual)
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
		if y.to-y.from <= together || x.told(l, y.from) || y.to-y.from <= f.Until-f.Since {
			continue
		}
		from, to, _ := l.Set.Bounds()
		f = finding.Finding{Subkind: Hang, At: r.Where, Since: y.from, Until: y.to, Severity: finding.Critical, Confidence: finding.Likely, Cost: share(y.to-y.from, to-from, len(l.Ranks)),
			Metric: finding.Metric{Name: "requests that run", Before: math.NaN(), After: y.running}}
		verb, until := "stands", "until "+words.TimeOfDay(y.to)+", when the log ends"
		if y.goesOn {
			verb, until = "stood", "until "+words.TimeOfDay(y.to)
		}
		f.Text = fmt.Sprintf("%s %s still since %s, with %s in its batch and %.0f waiting: %s, it computes no token", r.Where.String(), verb, words.TimeOfDay(y.from), words.Counted(int(y.running), "request"), y.queued, until)
		if f.Evidence = nil; y.sure {
			f.Confidence = finding.Certain
			f.Evidence = append(f.Evidence, finding.Sentence("%s tell of no token, and of as many requests as when tokens came", words.Counted(y.lines, "line")))
		} else {
			f.Evidence = append(f.Evidence, finding.Sentence("a prompt that takes so long to compute would look the same"))
		}
		ok = true
	}
	return f, ok
}
