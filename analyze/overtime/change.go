package overtime

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// alpha is the probability of a change where there is none, over all series.
const alpha = 0.05

// minLasting is the part of what was searched that a change lasts at least to be a finding.
const minLasting = 0.1

// A Change is when a metric of some devices or a counter became another one.
type Change struct {
	What  string   // "GPU busy"
	Where []string // devices or sources that changed at about one time
	// Time is when it changed, and First and Last bound it with a confidence of 95 %. Until
	// is when it was over; 0 is never.
	Time, First, Last, Until trace.Time
	Before, After            float64
	P                        float64
	Edge                     bool // it is, or may be, how the load begins or ends
	// Load says in words how much there was to do before and after; "" is unknown.
	Load string

	metric *observed
	ranks  []int32 // of Where
	lost   float64 // GPU time that it costs, ns
	known  bool    // that there was work
	less   bool    // there was more or less to do, or something else
	lasts  bool    // for a good part of what was searched
	back   bool    // it undoes an earlier one
	// Of steps: from when to when is looked at, how many there are before and after, and which kernels
	// changed most, in words.
	from, middle, to trace.Time
	rounds           [2]float64
	every            [2]float64 // ns from one to the next
	kernels          []string
	slower           map[trace.Sym]bool // the names of kernels that take longer in the same place
	gradual          bool               // by as much in every step
	ramp             *ramp              // of kernels in the same place
	between          bool               // First and Last: nothing is recorded then
}

// findChanges looks for changes in all series, and adds those that were found without one.
func (t *Timeline) findChanges(found []Change) {
	// Kernels in the same place tell more than the few steps that they are of.
	all := slices.DeleteFunc(t.allSeries(), func(s series) bool {
		return s.metric.perStep && slices.ContainsFunc(found, func(c Change) bool { return c.metric == paceMetric && c.Where[0] == s.place })
	})
	devices := map[string]bool{}
	for i := range all {
		if all[i].metric.of != nil {
			devices[all[i].place] = true
		}
	}
	t.judged = len(devices)
	for i := range all {
		found = append(found, t.changesOf(&all[i], alpha/float64(len(all)))...)
	}
	// That a device is busy less says more than the gaps do that make it so.
	found = slices.DeleteFunc(slices.Clone(found), func(c Change) bool {
		return c.metric == gapMetric && slices.ContainsFunc(found, func(o Change) bool { return o.metric.of != nil && o.lasts && o.Where[0] == c.Where[0] })
	})
	slices.SortStableFunc(found, func(a, b Change) int { return cmp.Compare(a.Time, b.Time) })
	t.Changes = t.join(found)
}

// changesOf looks for changes of a series.
func (t *Timeline) changesOf(s *series, level float64) []Change {
	mean := func(from, to int) float64 {
		sum := order.Total(s.values[from:to])
		return sum / float64(to-from)
	}
	var list []changepoint.Change
	if s.metric.perStep {
		n, left := len(s.values), math.Inf(1)
		if at, p := s.otherWork(); p <= level && s.metric.matters(mean(0, at), mean(at, n)) {
			list = []changepoint.Change{{At: at, First: at, Last: at, To: n, P: p}}
			left = squares(s.values[:at], mean(0, at)) + squares(s.values[at:], mean(at, n))
		}
		if c, ok := t.gradual(s, level, left); ok {
			return []Change{c}
		}
	}
	if list == nil {
		list = changepoint.Levels(s.values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
			return s.metric.matters(mean(from, k), mean(k, to))
		}})
	}
	var out []Change
	for _, x := range list {
		x.At, x.First, x.Last = t.betweenRecordings(s, x)
		from, to := x.From, x.To
		c := Change{What: s.metric.metric.Long, Where: []string{s.place}, ranks: []int32{s.rank}, metric: s.metric,
			Time: t.start(s, x.At), First: t.start(s, x.First), Last: t.start(s, x.Last),
			Before: mean(from, x.At), After: mean(x.At, to), P: min(1, x.P*alpha/level)}
		if t.unknownBefore(s, x.At) {
			c.First, c.between = t.fine.Start(s.buckets[x.At-1])+trace.Time(t.fine.Bucket), true
			c.Time = c.First + (c.Last-c.First)/2
		}
		before, after := t.within(s, from, x.At), t.within(s, x.At, to)
		if s.rounds != nil {
			c.setRounds(s.steps(from, x.At), s.steps(x.At, to))
		}
		t.compareWork(&c, before, after)
		c.Edge = !c.known && s.atEdge(x.At, c.After > c.Before)
		c.lost = t.lost(&c, after)
		c.lasts = float64(to-x.At) >= minLasting*float64(len(s.values)) && t.isLong(&c, before) && t.isLong(&c, after)
		out = append(out, c)
	}
	for i := range out {
		for k := range out[:i] {
			was, now := &out[k], &out[i]
			if was.Until == 0 && (was.After > was.Before) != (now.After > now.Before) && near(now.After, was.Before, was.After) {
				if was.Until, now.back = now.Time, true; now.between {
					was.Until = now.First // it lasted for as long as was recorded
				}
			}
		}
	}
	return out
}

// squares returns the sum of the squares of how far values are from their mean.
func squares(values []float64, mean float64) (sum float64) {
	return order.Sum(values, func(v float64) float64 { return (v - mean) * (v - mean) })
}

// within returns the buckets of some observations of a series.
func (t *Timeline) within(s *series, from, to int) []int {
	if s.rounds == nil {
		return s.buckets[from:to]
	}
	steps := s.steps(from, to)
	return t.buckets(steps[0].first, steps[len(steps)-1].last)
}

// buckets returns those of a time.
func (t *Timeline) buckets(from, to trace.Time) (list []int) {
	t.fine.Each(from, to, func(b int, _ int64) { list = append(list, b) })
	return list
}

// start returns when an observation of a series begins.
func (t *Timeline) start(s *series, i int) trace.Time {
	if s.rounds == nil {
		return t.fine.Start(s.buckets[i])
	}
	return s.steps(i, i+1)[0].first
}

// leastSteps is how many steps there are at least before and after a change.
const leastSteps = 5

// betweenRecordings returns where a change is, and may be. One that may be from one recording to the next is there: nothing is known
// of a time in between that is longer than all that is of the series.
func (t *Timeline) betweenRecordings(s *series, x changepoint.Change) (at, first, last int) {
	if s.rounds == nil {
		for k := max(1, x.First); k <= min(x.Last, len(s.values)-1); k++ {
			if t.unknownBefore(s, k) {
				return k, k, k
			}
		}
	}
	return x.At, x.First, x.Last
}

func (t *Timeline) unknownBefore(s *series, k int) bool {
	return k > 0 && k < len(s.buckets) && s.rounds == nil &&
		t.fine.Start(s.buckets[k])-t.fine.Start(s.buckets[k-1]) > trace.Time(int64(len(s.buckets))*t.fine.Bucket)
}

// within is by how much the time of a change may be off where nothing is recorded around it; else buckets are short.
func (c *Change) within() trace.Time {
	if !c.between {
		return 0
	}
	return c.Last - c.Time
}

// isLong reports whether some buckets are more than a few steps: parts of a step differ. Where
// nobody knows of steps, they are half a second.
func (t *Timeline) isLong(c *Change, buckets []int) bool {
	const unknown = 500_000_000
	if c.metric.perStep {
		return min(c.rounds[0], c.rounds[1]) >= leastSteps
	}
	if d := t.deviceNamed(c.Where[0]); d != nil && d.Stepped {
		all := d.sum(buckets)
		return all.steps >= leastSteps
	}
	return int64(len(buckets))*t.fine.Bucket >= unknown
}

// near reports whether a value is closer to one than to another.
func near(v, one, other float64) bool { return max(v-one, one-v) < max(v-other, other-v)/2 }

// atEdge reports whether a series rises so early or falls so late that this may be how the
// load begins or ends.
func (s *series) atEdge(at int, rises bool) bool {
	const part = 0.15
	margin := part * float64(len(s.values))
	if rises {
		return float64(at) < margin
	}
	return float64(at) > float64(len(s.values))-margin
}

// deviceNamed returns the device with a name, nil if there is none.
func (t *Timeline) deviceNamed(name string) *Device {
	for i := range t.Devices {
		if t.Name(&t.Devices[i]) == name {
			return &t.Devices[i]
		}
	}
	return nil
}

// lost returns the GPU time that a change costs in the buckets after it, ns.
func (t *Timeline) lost(c *Change, after []int) float64 {
	d := t.deviceNamed(c.Where[0])
	if c.metric.perStep {
		return max(0, c.After-c.Before) * c.rounds[1]
	}
	if d == nil || !c.metric.steady {
		return 0
	}
	worse := c.After - c.Before
	if c.metric.metric.Better == metric.More {
		worse = -worse
	}
	return max(0, worse) * float64(int64(len(after))*t.fine.Bucket)
}

// join makes one change of those of a metric that happened at about one time, in one
// direction.
func (t *Timeline) join(found []Change) []Change {
	var out []Change
	for i := range found {
		c := &found[i]
		k := slices.IndexFunc(out, func(o Change) bool {
			return o.What == c.What && (o.After > o.Before) == (c.After > c.Before) && o.Edge == c.Edge && o.known == c.known && o.less == c.less && o.gradual == c.gradual &&
				c.First <= o.Last+trace.Time(t.Bucket) && o.First <= c.Last+trace.Time(t.Bucket) && !slices.Contains(o.Where, c.Where[0])
		})
		if k < 0 {
			out = append(out, *c)
			continue
		}
		o := &out[k]
		n := float64(len(o.Where))
		o.Before, o.After = (o.Before*n+c.Before)/(n+1), (o.After*n+c.After)/(n+1)
		o.Where, o.ranks = append(o.Where, c.Where[0]), append(o.ranks, c.ranks[0])
		if c.P < o.P {
			o.Time, o.First, o.Last, o.P, o.Load = c.Time, c.First, c.Last, c.P, c.Load
		}
		o.lost += c.lost
		o.back = o.back && c.back
		if o.Until != 0 && c.Until != 0 {
			o.Until = max(o.Until, c.Until)
		} else {
			o.Until = 0
		}
	}
	return out
}

// where names the places of a change: "TP2", "TP0, TP1 and 6 others".
func (c *Change) where(of int) string {
	const named = 3
	at := slices.Clone(c.Where)
	if len(c.ranks) == len(at) {
		slices.SortStableFunc(at, func(x, y string) int {
			return cmp.Compare(c.ranks[slices.Index(c.Where, x)], c.ranks[slices.Index(c.Where, y)])
		})
	}
	switch n := len(at); {
	case n == of && n > named:
		return fmt.Sprintf("all %d devices", n)
	case n > named:
		return fmt.Sprintf("%s and %d others", strings.Join(at[:named-1], ", "), n-named+1)
	}
	return strings.Join(at, ", ")
}

// Sentence says what happened.
func (t *Timeline) Sentence(c *Change) string {
	if c.metric.pace != "" {
		why := c.Load
		if len(c.Where) > 1 {
			why = strings.Replace(why, asLowClock, "as if their clocks were lower", 1)
		}
		longer := words.ThreeDigits(c.After) + " times as long"
		if c.gradual {
			longer = "longer bit by bit, up to " + longer + ","
		}
		return fmt.Sprintf("%s take %s on %s since %s: %s", c.metric.pace, longer, c.where(len(t.Devices)), t.clock(c.Time), why)
	}
	verb := "falls"
	if c.After > c.Before {
		verb = "rises"
	}
	text := fmt.Sprintf("%s on %s %s from %s to %s ", c.What, c.where(len(t.Devices)), verb, c.metric.text(c.Before), c.metric.text(c.After))
	switch {
	case c.gradual:
		text += "bit by bit since " + t.clock(c.Time)
	case c.between:
		text += "between " + t.clock(c.First) + " and " + t.clock(c.Last) + ", of which nothing is recorded"
	default:
		text += "at " + t.clock(c.Time)
	}
	switch {
	case c.gradual:
	case c.back:
		text += ", back to about what it was"
	case c.Until != 0:
		text += ", until " + t.clock(c.Until)
	default:
		text += ", and stays there"
	}
	if c.Load != "" {
		text += "; " + c.Load
	}
	if c.metric.steady && !c.known {
		text += "; nothing recorded tells whether there was less to do"
	}
	return text
}

// clock writes a time to the digits that buckets have.
func (t *Timeline) clock(at trace.Time) string {
	layout := "15:04:05"
	for step := int64(1e9); t.Bucket%step != 0 && step > 1; step /= 10 {
		if layout == "15:04:05" {
			layout += "."
		}
		layout += "0"
	}
	return words.At(at, layout)
}

// How different work is at least before and after a change, so that it may be why.
const (
	otherPart   = 0.1 // of the time of steps, in steps that prefill
	otherFactor = 1.5 // requests in a batch, or under way
)

// compareWork says how much there was to do before and after a change, and whether that may
// explain it: devices are less busy with small batches than with large ones, and in decode
// than in prefill.
func (t *Timeline) compareWork(c *Change, before, after []int) {
	var parts []string
	compare := func(what string, x, y float64, differ bool) {
		if math.IsNaN(x) || math.IsNaN(y) {
			return
		}
		c.less = c.less || differ
		parts = append(parts, fmt.Sprintf("%s %s before and %s after", what, words.ThreeDigits(x), words.ThreeDigits(y)))
	}
	if d := t.deviceNamed(c.Where[0]); c.metric.perStep {
		parts = append(parts, c.period())
	} else if d != nil {
		_, c.known = t.work(d, 0)
		x, y := d.sum(before), d.sum(after)
		compare("requests in a batch:", x.batch(), y.batch(), differ(x.batch(), y.batch()))
		if p, q := x.prefill(), y.prefill(); max(p, q) > 0 {
			compare("prefilling, % of steps:", 100*p, 100*q, math.Abs(p-q) >= otherPart)
		}
		if d.Counted {
			compare("tokens/s:", d.TokenRate(&x), d.TokenRate(&y), false)
		}
	}
	if t.under != nil {
		x, y := average(t.under, before), average(t.under, after)
		compare("requests under way:", x, y, differ(x, y))
	}
	c.Load = strings.Join(parts, "; ")
}

// period says how long steps take.
func (c *Change) period() string {
	const same = 0.05
	x, y := c.every[0], c.every[1]
	if math.Abs(x-y) <= same*x {
		return fmt.Sprintf("a step still takes %s", words.Nearly(int64(y)))
	}
	before, after := c.halves()
	return fmt.Sprintf("a step takes %s %s and %s %s", words.Nearly(int64(x)), before, words.Nearly(int64(y)), after)
}

// sum adds up what a device did in some buckets of Timeline.fine.
func (d *Device) sum(buckets []int) (all Cell) {
	for _, b := range buckets {
		all.add(&d.fine[b])
	}
	return all
}

// batch returns how many requests a step computes, on average over time; NaN is unknown.
func (c *Cell) batch() float64 { return distribution.Ratio(c.batches, float64(c.batched)) }

// prefill returns the part of the time of steps that is prefill; NaN is unknown.
func (c *Cell) prefill() float64 { return distribution.Ratio(float64(c.prefilled), float64(c.Stepped)) }

// differ reports whether one number is much larger than the other.
func differ(x, y float64) bool { return max(x, y) > otherFactor*min(x, y) }

func average(values []float64, of []int) float64 {
	sum := order.Sum(of, func(b int) float64 { return values[b] })
	return sum / float64(len(of))
}

// Findings tells since when devices are busy less, or communicate more that nothing hides,
// while there is as much to do. Changes for the better, and those of which nobody knows
// whether there was less to do, are in the table only.
func (t *Timeline) Findings() (found []finding.Finding, check finding.Check) {
	check = finding.Check{What: "changes of GPUs over time", Of: "device", N: t.judged, Needed: 1}
	if t.judged == 0 {
		check.Reason = "too little of any GPU's work was recorded"
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		if c.lost <= 0 || !c.known || c.less && !c.metric.perStep || !c.lasts || c.Edge || c.back || c.lost < c.metric.minLost()*float64(t.length)*float64(len(c.Where))/float64(len(t.Devices)) {
			continue
		}
		f := finding.Finding{
			Kind: finding.Change, Subkind: c.What, Since: c.Time, Within: c.within(), Until: c.Until, Text: t.Sentence(c), P: finding.Chance(c.P),
			Metric: finding.Metric{Name: c.What, Unit: c.metric.unit(), Before: c.Before, After: c.After},
			Cost:   min(1, c.lost/float64(t.length)),
			Evidence: []finding.Evidence{finding.Sentence("%s if nothing had changed", words.Chance(c.P)).
				In("timeline.gpuchanges", finding.Row("what", c.What, "sentence", t.Sentence(c)), "p", c.P)},
		}
		if c.less {
			f.Severity = finding.Info // more is asked for: nothing is slower
		}
		if c.metric.pace != "" {
			f.Confidence = finding.Likely // what each of them had to do is not recorded
		}
		for _, text := range c.kernels {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", text))
		}
		if len(c.ranks) == 1 {
			f.At = place.Named(c.Where[0])
		}
		switch {
		case c.metric == copyMetric:
			f.Brief = fmt.Sprintf("since %s, those of one size take %s times as long on %s", t.clock(c.Time), words.ThreeDigits(c.After), c.where(len(t.Devices)))
		case c.metric == transferMetric:
			f.Brief = fmt.Sprintf("since %s, transfers take %s%s times as long", t.clock(c.Time), c.upTo(), words.ThreeDigits(c.After))
		case c.metric == gapMetric:
			f.Brief = fmt.Sprintf("since %s, gaps in front of the same kernels of %s take %s%s times as long", t.clock(c.Time), c.where(len(t.Devices)), c.upTo(), words.ThreeDigits(c.After))
		case c.metric.pace != "" && len(c.ranks) == 1:
			f.Brief = fmt.Sprintf("since %s, kernels of %s take %s%s times as long", t.clock(c.Time), c.Where[0], c.upTo(), words.ThreeDigits(c.After))
		case c.What == metric.ExposedComm.Long && c.Until == 0:
			f.Brief = fmt.Sprintf("since %s, %s is %s on %s, and was %s before", t.clock(c.Last), c.What, c.metric.text(c.After), c.where(len(t.Devices)), c.metric.text(c.Before))
		}
		found = append(found, f)
	}
	return found, check
}

// minLost is the part of the time of its devices that a change costs at least to be a finding; minPaceLost that of kernels
// in the same place: they are compared with themselves, and while hosts are slower still, they cost little.
const (
	minLost     = 0.05
	minPaceLost = 0.02
)

// minLost is that of what was observed.
func (m *observed) minLost() float64 {
	if m.pace != "" {
		return minPaceLost
	}
	return minLost
}
