package slow

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// withHalts adds, to changes, halts that a server began to report repeatedly when the change began, and not before.
// No batch runs during a halt.
func withHalts(l *telemetry.Logged, list []finding.Finding) []finding.Finding {
	const again = 3
	near := 2*trace.Time(l.Grid.Bucket) + trace.Time(l.Within)
	for i := range list {
		f := &list[i]
		for k := range l.Events {
			e := &l.Events[k]
			if e.Kind == series.Halt && e.N >= again && f.Since > l.From && max(e.First-f.Since, f.Since-e.First) <= near && telemetry.Host(&l.Set.Servers[e.Server]) == f.At.Host {
				f.Text += fmt.Sprintf("; from %s on, %s, %d times", words.TimeOfDay(e.First), e.Text, e.N)
				f.Evidence = append(f.Evidence, finding.Sentence("%s", l.Sentence(e)))
			}
		}
	}
	return list
}

// fillsSubkind is the subkind of findings about KV caches that fill up although no more requests run.
const fillsSubkind = "KV cache fills"

// fills finds a KV cache that fills up over time while the number of running requests stays the same: either they
// hold more and more of it, or finished requests do not free theirs.
func fills(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	const (
		parts   = 3
		times   = 2
		alike   = 0.25
		turns   = 2 // times that the running requests are replaced
		pieces  = parts * judge.FewBuckets
		ranLess = 1 // requests
	)
	if r.Where.Role != request.Unified || !r.Has(series.KVUsage) || !r.Has(series.Running) || l.Grid.N() < pieces {
		return f, false
	}
	var used, ran [parts]float64
	usage, running := l.Curve(r, series.KVUsage), l.Curve(r, series.Running)
	for k := range parts {
		from, to := k*len(usage)/parts, (k+1)*len(usage)/parts
		used[k], ran[k] = telemetry.Middle(usage[from:to]), telemetry.Middle(running[from:to])
		if !(ran[k] >= ranLess) || math.Abs(ran[k]-ran[0]) > alike*ran[0] || k > 0 && !(used[k] > used[k-1]) {
			return f, false
		}
	}
	last := telemetry.Middle(usage[len(usage)-len(usage)/pieces-1:])
	if !(last >= telemetry.Full) || used[parts-1] < times*used[0] {
		return f, false
	}
	came, many := 0.0, turns*ran[0]
	switch {
	case r.Has(series.NewSeqs):
		seqs, _ := r.TakenIn()
		for _, n := range seqs[len(seqs)/parts:] {
			came += n
		}
	case r.Has(series.PrefillRate): // shows only that prompts came
		rate := l.Curve(r, series.PrefillRate)
		for _, x := range rate[len(rate)/parts:] {
			if x > 0 {
				came++
			}
		}
	default:
		many = 0
	}
	if came < many {
		return f, false // the first requests are still running, and grow with every step
	}
	f = finding.Finding{Subkind: fillsSubkind, At: r.Where, Since: l.Start(0), Confidence: finding.Likely, Metric: finding.Metric{Name: "KV cache in use", Unit: table.Share, Before: used[0] / 100, After: last / 100}}
	f.Text = fmt.Sprintf("the KV cache of %s fills up, from %s %% to %s %% at %s, while about as many requests run (%s): each holds more of it, or finished requests do not free theirs", r.Where.String(), words.InPercent(used[0]/100),
		words.InPercent(last/100), words.TimeOfDay(l.To), words.ThreeDigits(ran[parts-1]))
	f.Evidence = append(f.Evidence, finding.Sentence("in thirds of the time, %s, %s, and %s %% are in use, and %s, %s, and %s requests run", words.InPercent(used[0]/100), words.InPercent(used[1]/100), words.InPercent(used[2]/100),
		words.ThreeDigits(ran[0]), words.ThreeDigits(ran[1]), words.ThreeDigits(ran[2])))
	return f, true
}
