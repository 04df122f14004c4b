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

// linesOfVLLM returns what the lines of a rank say, in the order of saidByVLLM, and how many lines there are: 0 where some say less than
// others, but for the last one, which may be cut off.
func linesOfVLLM(l *telemetry.Logged, r *telemetry.Rank) (lines [len(saidByVLLM)][]series.Sample, n int) {
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
	n = len(lines[0])
	for k := range lines {
		n = min(n, len(lines[k]))
	}
	for k := range lines {
		if len(lines[k]) > n+1 || n > 0 && lines[k][n-1].Time != lines[0][n-1].Time {
			return lines, 0
		}
	}
	return lines, n
}

// A still is a time in which lines of vLLM say that requests are in the batch, and that no token was computed of any.
type still struct {
	from, to        trace.Time // of the last line with tokens, and of the last one without, or of what else the log says behind it
	lines           int
	running, queued float64
	// sure tells that no prompt that takes long looks the same: as many requests are there as when tokens came.
	sure, goesOn bool
}

// long is how long lines without tokens may last, of at least [few] lines, until a server likely stands still: most prompts take less.
const long = trace.Time(30e9)

// few is how many lines without tokens say that a server stands still.
const few = 4

// stills returns the longest such time of a rank. Since its V1, an idle vLLM logs one line without tokens, and then none, and
// does not know that it is not idle: until is when its log ends.
func stills(l *telemetry.Logged, r *telemetry.Rank, until trace.Time) (x still) {
	lines, n := linesOfVLLM(l, r)
	tokens, prompts, running, queued := lines[0], lines[1], lines[2], lines[3]
	if n < 2 {
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
		if y.to-y.from <= together && (y.lines < few || y.to-y.from < long) || x.told(l, y.from) || y.to-y.from <= f.Until-f.Since {
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

// blocked finds a vLLM of whose log all lines tell that requests wait, and that none is taken in: none has a token of a prompt, as many run
// in each, and they get tokens.
func (x *ending) blocked(l *telemetry.Logged) (f finding.Finding, ok bool) {
	const least = 3 // lines
	if l.Set.Servers[x.server].Engine != "vLLM" {
		return f, false
	}
	for _, r := range x.ranks {
		lines, n := linesOfVLLM(l, r)
		tokens, prompts, running, queued := lines[0], lines[1], lines[2], lines[3]
		if n < least || slices.ContainsFunc(prompts[:n], func(x series.Sample) bool { return x.Value > 0 }) {
			continue
		}
		k := 0
		for k < n && queued[k].Value >= max(1, queued[0].Value) && tokens[k].Value > 0 && running[k].Value == running[0].Value {
			k++
		}
		if k < n || running[0].Value < 1 {
			continue
		}
		f = finding.Finding{Subkind: Blocked, At: r.Where, Since: queued[0].Time, Severity: finding.Warning, Confidence: finding.Certain,
			Metric: finding.Metric{Name: "requests that wait", Before: math.NaN(), After: queued[0].Value}}
		f.Text = fmt.Sprintf("%s wait on %s from %s to %s, and none of them is taken in, while %s", words.Counted(int(queued[0].Value), "request"), r.Where.String(),
			words.TimeOfDay(queued[0].Time), words.TimeOfDay(queued[n-1].Time), runs(int(running[0].Value)))
		f.Evidence = append(f.Evidence, finding.Sentence("none of its %d lines has a token of a prompt", n))
		if usage := r.Most(series.KVUsage); usage >= 0 {
			f.Evidence = append(f.Evidence, finding.Sentence("its KV cache is %s %% full: what waits does not fit beside what runs, or a limit of running requests keeps it out", words.InPercent(usage/100)))
		}
		return f, true
	}
	return f, false
}

// runs says how many requests run.
func runs(n int) string {
	if n == 1 {
		return "1 runs"
	}
	return fmt.Sprintf("%d run", n)
}
