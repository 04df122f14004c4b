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

// alpha is the probability of reporting a change where there is none, over all series together.
const alpha = 0.05

// minLasting is the least part of the searched time that a change must last to be a finding.
const minLasting = 0.1

// A Change is a moment at which a metric of some devices, or a counter, shifted.
type Change struct {
	What  string   // "GPU busy"
	Where []string // devices or sources that changed at about the same time
	// Time is when it changed; First and Last bound it with a confidence of 95 %. Until is when it was
	// undone; 0 is never.
	Time, First, Last, Until trace.Time
	Before, After            float64
	P                        float64
	Edge                     bool // it is, or may be, the beginning or the end of the load
	// Load says in words how much work there was before and after; "" is unknown.
	Load string

	metric *observed
	ranks  []int32 // of Where
	lost   float64 // GPU time that it costs, ns
	known  bool    // it is known when there was work
	less   bool    // the amount or the kind of work differs before and after
	lasts  bool    // it lasts for a large part of the searched time, and for enough steps
	back   bool    // it undoes an earlier one
	// For changes in steps: the stretches from..middle and middle..to are compared, with rounds steps
	// each. kernels says in words which kernels changed most.
	from, middle, to trace.Time
	rounds           [2]float64
	every            [2]float64 // median ns from the first kernel of a step to that of the next
	kernels          []string
	slower           map[trace.Sym]bool // names of the kernels that take longer in the same place
	gradual          bool               // it is a steady rise or fall, not a jump
	ramp             *ramp              // of kernels in the same place; nil if it is a jump
	between          bool               // nothing was recorded between First and Last
}

// findChanges looks for changes in all series, and adds them to those that were found without a series.
func (t *Timeline) findChanges(found []Change) {
	// Kernels in the same place say more than the few steps that contain them.
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
	// A lasting change in a metric of the device says more than the gaps that cause it.
	found = slices.DeleteFunc(slices.Clone(found), func(c Change) bool {
		return c.metric == gapMetric && slices.ContainsFunc(found, func(o Change) bool { return o.metric.of != nil && o.lasts && o.Where[0] == c.Where[0] })
	})
	slices.SortStableFunc(found, func(a, b Change) int { return cmp.Compare(a.Time, b.Time) })
	t.Changes = t.join(found)
}

// changesOf looks for changes in a series, at a level of significance.
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
			left = changepoint.Squares(s.values[:at], mean(0, at)) + changepoint.Squares(s.values[at:], mean(at, n))
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

// within returns the fine buckets that the observations from..to-1 of a series cover.
func (t *Timeline) within(s *series, from, to int) []int {
	if s.rounds == nil {
		return s.buckets[from:to]
	}
	steps := s.steps(from, to)
	return t.buckets(steps[0].first, steps[len(steps)-1].last)
}

// buckets returns the fine buckets between two times.
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

// leastSteps is the fewest steps that a change needs before and after it.
const leastSteps = 5

// betweenRecordings returns the index of a change, and its bounds. If it may lie in a pause between
// recordings, it is put there: such a pause is longer than the whole recorded part of the series.
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

// within returns how far off the time of a change may be if nothing was recorded around it, and 0 otherwise: buckets are short.
func (c *Change) within() trace.Time {
	if !c.between {
		return 0
	}
	return c.Last - c.Time
}

// isLong reports whether buckets hold enough steps to be compared, as parts of a step differ. Where
// steps are unknown, it takes half a second.
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

// near reports whether v is less than half as far from one as it is from other.
func near(v, one, other float64) bool { return max(v-one, one-v) < max(v-other, other-v)/2 }

// atEdge reports whether a series rises so early or falls so late that the load may merely have begun
// or ended.
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

// join merges changes of a metric that happened at about the same time, in the same direction.
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
	case n == of && n > named && c.metric == operatorMetric:
		return fmt.Sprintf("all %d ranks", n)
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
		return fmt.Sprintf("%s %s on %s %s: %s", c.metric.pace, c.worse(), c.where(len(t.Devices)), t.since(c), c.Load)
	}
	verb := "falls"
	if c.After > c.Before {
		verb = "rises"
	}
	text := fmt.Sprintf("%s on %s %s from %s to %s ", c.What, c.where(len(t.Devices)), verb, c.metric.text(c.Before), c.metric.text(c.After))
	switch {
	case c.gradual:
		text += "gradually since " + t.clock(c.Time)
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

// since says from when on something changed, and until when if it was undone.
func (t *Timeline) since(c *Change) string {
	if c.Until != 0 {
		return "from " + t.clock(c.Time) + " to " + t.clock(c.Until)
	}
	return "since " + t.clock(c.Time)
}

// clock formats a time with as many digits as the buckets need.
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

// Work that differs by this much before and after a change may explain it.
const (
	otherPart   = 0.1 // difference in the share of step time that is prefill, or relative one in kernels per step
	otherFactor = 1.5 // ratio of batch sizes, or of requests under way
)

// compareWork says how much work there was before and after a change, and sets less if that may explain
// it: devices are less busy with small batches than with large ones, and in decode than in prefill.
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

// batch returns the mean batch size, weighted by time; NaN is unknown.
func (c *Cell) batch() float64 { return distribution.Ratio(c.batches, float64(c.batched)) }

// prefill returns the share of step time that is prefill; NaN is unknown.
func (c *Cell) prefill() float64 { return distribution.Ratio(float64(c.prefilled), float64(c.Stepped)) }

// differ reports whether one number is more than otherFactor times the other.
func differ(x, y float64) bool { return max(x, y) > otherFactor*min(x, y) }

func average(values []float64, of []int) float64 {
	sum := order.Sum(of, func(b int) float64 { return values[b] })
	return sum / float64(len(of))
}

// Findings returns the lasting changes that cost GPU time although there was as much to do: devices are busy
// less, hide less of their communication, or take longer for the same steps, kernels, copies, or transfers.
// Improvements, and changes for which it is unknown whether there was less to do, are in the table only.
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
			Metric:   finding.Metric{Name: c.What, Unit: c.metric.unit(), Before: c.Before, After: c.After},
			Cost:     min(1, c.lost/float64(t.length)),
			Evidence: []finding.Evidence{finding.ByChance(c.P)},
		}
		if c.metric != operatorMetric { // a table has it
			f.Evidence[0] = f.Evidence[0].In("timeline.gpuchanges", finding.Row("what", c.What, "sentence", t.Sentence(c)), "p", c.P)
		}
		if c.less {
			f.Severity = finding.Info // there is more to do; nothing is slower
		}
		if c.metric.pace != "" {
			f.Confidence = finding.Likely // how much each kernel had to do is not recorded
		}
		for _, text := range c.kernels {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", text))
		}
		if len(c.ranks) == 1 {
			f.At = place.Named(c.Where[0])
		}
		switch {
		case c.metric == copyMetric:
			f.Brief = fmt.Sprintf("%s, those of one size take %s times as long on %s", t.since(c), words.ThreeDigits(c.After), c.where(len(t.Devices)))
		case c.metric == transferMetric:
			f.Brief = fmt.Sprintf("%s, transfers take %s%s times as long", t.since(c), c.upTo(), words.ThreeDigits(c.After))
		case c.metric == repeatMetric:
			f.Brief = fmt.Sprintf("%s, kernels are launched %s times as often in a row on %s", t.since(c), words.ThreeDigits(c.After), c.where(len(t.Devices)))
		case c.metric == gapMetric:
			f.Brief = fmt.Sprintf("%s, gaps in front of the same kernels of %s take %s%s times as long", t.since(c), c.where(len(t.Devices)), c.upTo(), words.ThreeDigits(c.After))
		case c.metric.pace != "" && len(c.ranks) == 1:
			f.Brief = fmt.Sprintf("%s, %s of %s take %s%s times as long", t.since(c), c.metric.pace, c.Where[0], c.upTo(), words.ThreeDigits(c.After))
		case c.What == metric.ExposedComm.Long && c.Until == 0:
			f.Brief = fmt.Sprintf("since %s, %s is %s on %s, and was %s before", t.clock(c.Last), c.What, c.metric.text(c.After), c.where(len(t.Devices)), c.metric.text(c.Before))
		}
		found = append(found, f)
	}
	return found, check
}

// minLost is the least share of its devices' time that a change must cost to be a finding. minPaceLost is the one
// for kernels in the same place: they are compared with themselves, and cost little while the host is even slower.
const (
	minLost     = 0.05
	minPaceLost = 0.02
)

// minLost returns the threshold for m.
func (m *observed) minLost() float64 {
	if m.pace != "" {
		return minPaceLost
	}
	return minLost
}
