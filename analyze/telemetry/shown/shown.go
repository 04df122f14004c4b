// Package shown finds curves from dashboards that leave their usual range. Nothing but their names is known about
// them.
package shown

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"gonum.org/v1/gonum/stat/combin"
)

// A curve is a series on its own: no other series of its server is known.
type curve struct {
	name, unit string
	at         place.Location
	times      []trace.Time
	values     []float64
	// Its first change, if there is one.
	change        changepoint.Change
	before, after float64
	rises, found  bool
}

// Shown finds curves of an export that become much higher or lower at some time. Only their names say what they
// measure, so they have no cost.
func Shown(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "curves of exports", Of: "curve", Needed: 1}
	var by order.Groups[string, []*curve]
	alone := !slices.ContainsFunc(l.Set.List, func(s series.Series) bool { return s.Metric != l.Set.List[0].Metric })
	for i := range l.Set.List {
		c := shownCurve(l, i, alone)
		if c == nil {
			continue
		}
		check.N++
		order.Add(&by, l.Set.Metric(l.Set.List[i].Metric).Name, c)
	}
	if check.N == 0 {
		check.Reason = "no input is an export of a few curves alone"
	}
	var out []finding.Finding
	for _, list := range by.List {
		if f, ok := changed(list); ok {
			out = append(out, f)
		}
	}
	return out, check
}

// shownCurve returns series i as a curve, or nil if others cover it. It takes series with unknown names, the only
// metric of all inputs, memory, and the usage of a KV cache without the number of requests. Counters become rates per
// second.
func shownCurve(l *telemetry.Logged, i int, alone bool) *curve {
	s := &l.Set.List[i]
	m := l.Set.Metric(s.Metric)
	where := l.Set.NameOf(s.Place, l.Names)
	c := &curve{name: l.Set.Labeled(m.Name, s.Label), unit: m.Unit, at: place.Device(cmp.Or(where, m.Name))}
	switch k := slices.IndexFunc(l.Ranks, func(r telemetry.Rank) bool { return r.Place == s.Place }); {
	case m.Kind == series.Shown:
	case s.Metric == series.KVUsage && k >= 0 && !l.Ranks[k].Has(series.Running) && !l.Ranks[k].Has(series.Queued):
		c.at = l.Ranks[k].Where
		c.name = "the KV cache of " + c.at.String()
	case slices.Contains(memories, m.Name) && where != "":
		c.name += " of " + where
	case alone && where != "" && !slices.Contains(series.Ranked, s.Metric) && slices.Contains([]series.Kind{series.Gauge, series.Mean, series.Counter}, m.Kind) && s.Metric != series.Throttling && s.Metric != series.Xid:
		c.name += " of " + where
	default:
		return nil
	}
	var last series.Sample
	for x := range l.Set.Each(i) {
		before := last
		if last = x; !l.Opt.Inside(x.Time) || m.Kind == series.Counter && (before.Time == 0 || x.Time <= before.Time) {
			continue
		}
		value := x.Value
		if m.Kind == series.Counter {
			value = series.Growth(before.Value, value) / (float64(x.Time-before.Time) / 1e9)
		}
		c.times, c.values = append(c.times, x.Time), append(c.values, value)
	}
	if m.Kind == series.Counter {
		c.unit += "/s"
	}
	if len(c.values) < judge.FewBuckets {
		return nil
	}
	if c.look(); slices.Contains(memories, m.Name) && (!c.rises || c.change.To < len(c.values)) {
		c.found = false // memory that is released does not run out
	}
	return c
}

// memories are metrics of the memory of processes, which are examined even if there are other metrics.
var memories = []string{"container_memory_working_set_bytes", "process_resident_memory_bytes"}

// look finds how a curve changes: when it leaves its initial range for good and goes far above or below it, or else
// when its level changes.
func (c *curve) look() {
	for k := judge.FewBuckets; k < len(c.values) && !c.found; k *= 2 {
		high, low := slices.Max(c.values[:k]), slices.Min(c.values[:k])
		spread := high - low
		c.leaves(k, func(v float64) bool { return v <= high+spread }, func(v float64) bool { return v > judge.MuchMore*high && v > 0 })
		c.leaves(k, func(v float64) bool { return v >= low-spread }, func(v float64) bool { return v < low/judge.MuchMore && v >= 0 })
	}
	if c.found {
		return
	}
	n := len(c.values)
	down := slices.IsSortedFunc(c.values, func(a, b float64) int { return cmp.Compare(b, a) })
	if first, last := c.values[0], c.values[n-1]; (down || slices.IsSorted(c.values)) && min(first, last) >= 0 && max(first, last) > judge.MuchMore*min(first, last) {
		c.is(changepoint.Change{To: n, P: math.NaN()})
		return
	}
	list := changepoint.Levels(c.values, changepoint.Options{Alpha: judge.Surely, Keep: func(from, k, to int) bool {
		x, y := judge.Mean(c.values[from:k]), judge.Mean(c.values[k:to])
		return min(x, y) >= 0 && max(x, y) > judge.MuchMore*min(x, y)
	}})
	if len(list) > 0 {
		c.is(list[0])
	}
}

// leaves finds the first few consecutive values at or after k that are far from those before, and the time from which
// none is within their range.
func (c *curve) leaves(k int, within, far func(float64) bool) {
	n := 0
	for i := k; i < len(c.values) && !c.found; i++ {
		if n++; !far(c.values[i]) {
			n = 0
		}
		if n < judge.FewLimited {
			continue
		}
		at, to := i-n+1, i+1
		for at > k && !within(c.values[at-1]) {
			at--
		}
		for to < len(c.values) && far(c.values[to]) {
			to++
		}
		c.is(changepoint.Change{At: at, To: to, P: math.Exp(-combin.LogGeneralizedBinomial(float64(k+n), float64(n)))})
	}
}

// is records a change. For a curve that only rises or only falls, after is the extreme that it reaches.
func (c *curve) is(change changepoint.Change) {
	c.change, c.found = change, true
	then := c.values[change.At:change.To]
	if c.before = judge.Mean(c.values[change.From:change.At]); change.At == 0 {
		c.before = then[0]
	}
	if c.rises = judge.Mean(then) > c.before; c.rises {
		c.after = slices.Max(then)
	} else {
		c.after = slices.Min(then)
	}
}

// changed makes the finding of the curves of one name that changed, led by the largest change.
func changed(list []*curve) (f finding.Finding, ok bool) {
	var found []*curve
	for _, c := range list {
		if c.found {
			found = append(found, c)
		}
	}
	if len(found) == 0 || len(found) == 1 && strings.HasPrefix(found[0].name, series.Metrics[series.GPUUtil].Name) { // a single GPU: other findings cover hardware
		return f, false
	}
	part := func(c *curve) float64 {
		return max(c.before, c.after) / (min(c.before, c.after) + max(c.before, c.after)/1e3)
	}
	slices.SortStableFunc(found, func(a, b *curve) int { return cmp.Compare(part(b), part(a)) })
	c := found[0]
	f = finding.Finding{Subkind: "shown", Severity: finding.Info, At: c.at, Since: c.times[c.change.At], P: finding.Chance(c.change.P),
		Metric: finding.Metric{Name: c.name, Before: c.before, After: c.after}, Text: c.sentence()}
	if c.change.To < len(c.times) {
		f.Until = c.times[c.change.To]
	}
	const few = 3
	for _, o := range found[1:min(len(found), 1+few)] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", o.sentence()))
	}
	if n := len(found) - 1 - few; n > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%s with its name change, too", words.Counted(n, "more")))
	}
	if n := len(list) - len(found); n > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%s with its name did not change that way", words.Counted(n, "other")))
	}
	if slices.ContainsFunc(memories, func(name string) bool { return strings.HasPrefix(c.name, name) }) {
		f.Evidence = append(f.Evidence, finding.Sentence("nothing says what holds it, or when it runs out"))
	} else {
		f.Evidence = append(f.Evidence, finding.Sentence("only its name is known: neither why nor what it costs"))
	}
	return f, true
}

// sentence says how a curve changes.
func (c *curve) sentence() string {
	verb := "falls"
	if c.rises {
		verb = "rises"
	}
	number := func(v float64) string {
		switch {
		case c.unit == "%":
			return words.InPercent(v/100) + " %"
		case c.unit == "bytes" || c.unit == "B" || strings.Contains(c.name, "_bytes"):
			return words.Size(int64(v))
		}
		return strings.TrimSpace(words.ThreeDigits(v) + " " + c.unit)
	}
	until := ""
	if c.change.To < len(c.times) {
		until = " until " + words.TimeOfDay(c.times[c.change.To])
	}
	return fmt.Sprintf("%s %s since %s%s, to %s (%s before)", c.name, verb, words.TimeOfDay(c.times[c.change.At]), until, number(c.after), number(c.before))
}
