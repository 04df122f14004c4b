package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
)

// minWeight is the smallest change worth reporting, as a part of the time of a request or step.
const minWeight = 0.01

// words returns the verdict: what is different about the load, what users notice, and which stage and kernel it comes from.
func (d *Diff) words(rows *diffRows) string {
	says := d.says(rows)
	if rest, ok := strings.CutPrefix(says[0], "no"); ok { // the others begin with a name
		says[0] = "No" + rest
	}
	return strings.Join(says, "; ")
}

// says returns the parts of the verdict.
func (d *Diff) says(rows *diffRows) []string {
	says := slices.Concat(d.setupInWords(), d.withoutCounterpart(), d.lengths())
	if d.same() {
		return append(says, "no difference")
	}
	if !d.tested() {
		paces, which := d.paces((*pace.Pace).Slower), "a"
		if len(paces) > 0 {
			which = "another"
		}
		says = append(append(says, paces...), "not enough data to tell "+which+" change from noise; rows are sorted by how much they moved the total")
		says = append(says, d.paces((*pace.Pace).Same)...)
		says = slices.Concat(says, d.within(), order.Each(d.large(nil), d.plain))
		return append(says, d.visible()...)
	}
	differ := len(says)
	reasons, follow := d.reasons()
	says = append(says, order.Each(reasons, func(f finding.Finding) string { return f.Text })...)
	says = append(says, d.following(follow, len(says) > 0)...)
	told := d.toldRows()
	devices := d.Before.Requests <= 0 && d.After.Requests <= 0
	if devices {
		says = append(says, d.within()...) // a time says more than sums
	}
	large := d.large(told)
	says = append(says, order.Each(large, d.plain)...)
	for _, r := range told {
		says = append(says, d.sentence(r, rows))
	}
	says = append(says, d.replacements()...)
	if !devices {
		says = append(says, d.within()...)
	}
	if n := len(d.muted) + len(d.mutedReasons) + d.mutedWithin; n > 0 {
		says = append(says, words.Counted(n, "change")+" muted")
	}
	says = append(says, d.visible()...)
	return append(says, d.countOthers(slices.Concat(told, large, d.muted), len(says) > differ)...)
}

// following reports the load that follows from other changes: only by name if such changes are known.
func (d *Diff) following(list []*compare.Load, known bool) []string {
	if len(list) == 0 || !known {
		return order.Each(list, (*compare.Load).Words)
	}
	names := order.Each(list, func(l *compare.Load) string { name, _, _ := strings.Cut(l.Name, ","); return name })
	return []string{words.Some(names, compare.MaxNames) + " changed with that"}
}

// withoutCounterpart reports rows that only one capture has, perhaps because it records other spans.
func (d *Diff) withoutCounterpart() []string {
	n := len(order.Only(d.Rows, func(r Row) bool { return r.elsewhere }))
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %s in one capture only, perhaps because of that", words.Counted(n, "row"), words.IsOrAre(n))}
}

// setupInWords reports what differs in the setup.
func (d *Diff) setupInWords() []string {
	list := order.Each(d.Setup, func(s setup.Setting) string {
		return fmt.Sprintf("%s %s -> %s", s.Name, words.Clean(s.Before), words.Clean(s.After))
	})
	if len(list) == 0 {
		return nil
	}
	return []string{"Setup differs: " + strings.Join(list, ", ")}
}

// large returns the step and the device time that moved by more than all of told, although they are not significant: the
// largest cost comes first, and says itself how sure it is. It returns the step in any case if nothing else is reported.
func (d *Diff) large(told []*Row) (rows []*Row) {
	if d.Before.Requests > 0 || d.After.Requests > 0 {
		return nil
	}
	most := int64(0)
	for _, r := range told {
		most = max(most, distribution.Abs(r.Effect()))
	}
	for _, kind := range [...]Kind{Step, GPU} {
		var best *Row
		kinds := 0
		for i := range d.Rows {
			r := &d.Rows[i]
			if r.Kind == kind {
				kinds++
			}
			if r.Kind == kind && !r.only() && (best == nil || distribution.Abs(r.Moved()) > distribution.Abs(best.Moved())) {
				best = r
			}
		}
		mixture := kind == Step && kinds > 1 // how often each kind ran is the load
		if best == nil || mixture || d.annotated((*compare.Change).Matters) || best.Changed() || slices.Contains(d.muted, best) {
			continue
		}
		moved := distribution.Abs(best.Moved())
		if moved > most && d.part(best, moved) >= largePart || kind == Step && len(told) == 0 {
			rows = append(rows, best)
		}
	}
	return rows
}

// largePart is the part of a step's time above which a change is reported even if it may be chance.
const largePart = 0.1

// visible reports metrics of requests that changed so much that everyone sees it, but may be chance all the same,
// because the captures have too few pieces, or these scatter as much.
func (d *Diff) visible() []string {
	var list []string
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Changed() || r.Rank != "" || !r.noticed() && r.metricOf() != metric.Queue {
			continue
		}
		if r.P50.Size() >= math.Log(visibleFactor) && d.part(r, 10*(r.After.P50-r.Before.P50)) >= visiblePart {
			list = append(list, fmt.Sprintf("%s p50 %s%s", r.Name, compare.PairInWords(r.Before.P50, r.After.P50), r.P50.InBrackets()))
		}
	}
	return list
}

// visibleFactor is the smallest change of a median that everyone sees, if it is also visiblePart of the time of a request: nobody
// sees that a queue of microseconds doubles. The p99 is not used, as it differs by factors of hundreds between healthy runs.
const (
	visibleFactor = 2
	visiblePart   = 0.05
)

// countOthers reports how many rows changed besides those told. any is whether the verdict already reports a change.
func (d *Diff) countOthers(told []*Row, any bool) (says []string) {
	others, small, fresh, gone, slight := 0, 0, 0, 0, 0
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.slight() != nil {
			slight++
		}
		switch {
		case !r.Changed() || slices.Contains(told, r):
		case r.Before.N == 0:
			fresh++
		case r.After.N == 0:
			gone++
		case d.weight(r) < minWeight:
			small++
		default:
			others++
		}
	}
	switch {
	case !any && others+small+fresh+gone == 0 && slight > 0:
		says = append(append(says, fmt.Sprintf("no difference of %.0f %% or more: %s", 100*compare.MinChange, d.slightest(slight))), d.paces((*pace.Pace).Same)...)
	case !any && others+small+fresh+gone == 0:
		says = slices.Concat(append(says, "no significant difference"), d.bounds(), d.paces((*pace.Pace).Same), d.unpaired())
	case others+small+fresh+gone == 0 && len(d.Before.Within)+len(d.After.Within) > 0:
		says = append(says, "no other significant difference over all of both")
	case !any && others+fresh+gone == 0:
		says = append(says, fmt.Sprintf("no difference that matters: %s changed, each by less than %.0f %% of the total", words.Counted(small, "row"), 100*minWeight))
	case others+small+fresh+gone == 0:
		says = append(says, "no other significant difference")
	case others > 0:
		says = append(says, words.Counted(others+small, "other row")+" changed")
	case small > 0:
		says = append(says, fmt.Sprintf("%s changed, by less than %.0f %% of the total each", words.Counted(small, "other row"), 100*minWeight))
	}
	switch {
	case min(fresh, gone) > 0:
		says = append(says, fmt.Sprintf("%d new and %d gone", fresh, gone))
	case fresh > 0:
		says = append(says, fmt.Sprintf("%d new", fresh))
	case gone > 0:
		says = append(says, fmt.Sprintf("%d gone", gone))
	}
	if r, n := d.untested(told); n > 0 {
		says = append(says, fmt.Sprintf("not enough data for %s, of which %s moved most", words.Counted(n, "row"), d.numberInWords(r, r.movedBy())))
	}
	return says
}

// slight returns the number of the row that changed most, if some did, but none by enough to matter; or nil.
func (r *Row) slight() (most *diffNumber) {
	if r.Changed() {
		return nil
	}
	for i := range diffNumbers {
		n := &diffNumbers[i]
		if c := n.change(r); !(r.Kind == Request && n.name == "total") && c.Significant() && (most == nil || c.Size() > most.change(r).Size()) {
			most = n
		}
	}
	return most
}

// slightest says how the most important of n rows changed that changed by too little to matter.
func (d *Diff) slightest(n int) string {
	i := slices.IndexFunc(d.Rows, func(r Row) bool { return r.slight() != nil && r.noticed() })
	if i < 0 {
		i = slices.IndexFunc(d.Rows, func(r Row) bool { return r.slight() != nil })
	}
	text := d.numberInWords(&d.Rows[i], d.Rows[i].slight())
	if n > 1 {
		text += fmt.Sprintf(", and %s less", words.Counted(n-1, "other row"))
	}
	return text
}

// bounds says by how much what users notice may have changed all the same.
func (d *Diff) bounds() []string {
	var list []string
	for _, m := range metric.At(metric.Noticed) {
		if r := d.Row(Request, m.Name); r != nil && r.P50.Tells() {
			list = append(list, m.Name+" "+r.P50.Interval(" (CI ", ")"))
		}
	}
	if list == nil {
		return nil
	}
	return []string{"p50 of " + strings.Join(list, ", of ")}
}

// untested returns how many rows that may matter, and are not told, have too little data, and which of them moved the total most.
func (d *Diff) untested(told []*Row) (most *Row, n int) {
	for i := range d.Rows {
		r := &d.Rows[i]
		known := r.Mean.Tells() || (r.only() || r.Kind == GPU) && r.Total.Tells()
		if known || r.elsewhere || d.isRequest(r) || r.Changed() || slices.Contains(told, r) || r.Kind == Step && d.annotated((*compare.Change).Tested) || d.part(r, r.Moved()) < minWeight {
			continue
		}
		if n++; most == nil || distribution.Abs(r.Moved()) > distribution.Abs(most.Moved()) {
			most = r
		}
	}
	return most, n
}

// same reports whether all numbers of both captures are the same.
func (d *Diff) same() bool {
	return !slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Before != r.After }) &&
		!slices.ContainsFunc(d.Load, func(l compare.Load) bool { return l.Before != l.After })
}

// tested reports whether there was enough data to compare anything.
func (d *Diff) tested() bool {
	for i := range d.Load {
		if d.Load[i].Change.Tested() {
			return true
		}
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		if slices.ContainsFunc(r.changes(), (*compare.Change).Tested) {
			return true
		}
	}
	return false
}

// weight returns a row's effect, as a part of the time of a request or of the work of a step. Metrics of requests always matter,
// except the time outside servers: a part of the time to the first token is enough.
func (d *Diff) weight(r *Row) float64 {
	switch m := r.metricOf(); {
	case m == metric.Outside:
		return max(d.part(r, r.Effect()), d.partOfFirst(r)*minWeight/visiblePart)
	case r.Kind == Request:
		return 1
	}
	return d.part(r, r.Effect())
}

// partOfFirst returns a row's effect, as a part of the time to the first token; 0 if that is unknown.
func (d *Diff) partOfFirst(r *Row) float64 {
	first := d.Row(Request, metric.TTFT.Name)
	if first == nil || first.only() {
		return 0
	}
	return distribution.Fraction(distribution.Abs(r.Effect()), max(first.Before.Mean, first.After.Mean))
}

// cost returns a row's effect, as a part of the time of a request or of the work of a step; 0
// if unknown, as for metrics of each token.
func (d *Diff) cost(r *Row) float64 {
	if m := r.metricOf(); r.Kind == Request && (m == metric.ITL || m == metric.TPOT) {
		return 0
	}
	return min(1, d.part(r, r.Effect()))
}

// part returns a time as a part of that of a request, or of the work of a step on the rank.
func (d *Diff) part(r *Row, time int64) float64 {
	whole := d.whole[d.wholeOf(r)]
	if whole == 0 {
		return 1
	}
	return distribution.Fraction(distribution.Abs(time), whole)
}

// wholeOf returns the key of the time that a row is a part of.
func (d *Diff) wholeOf(r *Row) diffKey {
	if r.Kind.profiled() {
		return diffKey{Kind: Kernel, Rank: r.Rank}
	}
	return diffKey{Kind: Request}
}

// addUp finds how long a request takes, and how long the device work of a step on every rank
// takes, in the capture in which that is more; in tenths of ns.
func (d *Diff) addUp() {
	before, after := map[diffKey]int64{}, map[diffKey]int64{}
	d.whole = map[diffKey]int64{}
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind == Kernel || r.Kind == Copy || r.metricOf() == metric.E2E {
			key := d.wholeOf(r)
			before[key] = distribution.AddTimes(before[key], max(0, r.Before.PerUnit))
			after[key] = distribution.AddTimes(after[key], max(0, r.After.PerUnit))
			d.whole[key] = max(before[key], after[key])
		}
	}
}

// sentence says how a row changed, and where.
func (d *Diff) sentence(r *Row, rows *diffRows) string {
	text := d.plain(r)
	if r.Like != "" {
		text += ", perhaps the same as " + table.CutMiddle(words.Clean(r.Like), maxVerdictName, table.Style{ASCII: true}) + " in the other capture"
	}
	if !d.byRank {
		text += rows.where(r)
	}
	if d.alike != "" && r.computes() {
		text += ", and nearly all other kernels that compute by about as much, " + d.alike
	}
	return text
}

// plain says how a row changed.
func (d *Diff) plain(r *Row) string { return d.numberInWords(r, r.telling()) }

// numberInWords says how a number of a row changed.
func (d *Diff) numberInWords(r *Row, n *diffNumber) string {
	text := nameInWords(r)
	switch r.Kind {
	case Step:
		text = strings.TrimPrefix(text+" steps", "other ")
	case GPU:
		text = "GPU " + text
	case HostWait:
		text += " (host waits)"
	}
	if r.Rank != "" {
		text += " on " + r.Rank
	}
	switch {
	case r.Before.N == 0:
		text += fmt.Sprintf(" is new: %s%s", table.InWords(r.After.PerUnit/10), d.perUnit(r))
	case r.After.N == 0:
		text += fmt.Sprintf(" is gone: it took %s%s", table.InWords(r.Before.PerUnit/10), d.perUnit(r))
	default:
		what, before, after := n.name, int64(n.value(&r.Before)), int64(n.value(&r.After))
		if unit := d.unit(r); what == "total" && unit != perSecond.String() {
			what += " per " + unit
		}
		text += fmt.Sprintf(" %s %s%s", what, compare.PairInWords(before, after), n.change(r).InBrackets())
		if b, a := r.Before.rate(), r.After.rate(); r.Kind.profiled() && r.Kind != GPU && math.Abs(b-a) > compare.MinChange*b {
			text += fmt.Sprintf(", %s -> %s%s", words.ThreeDigits(b), words.ThreeDigits(a), d.perUnit(r))
		}
	}
	return text
}

func nameInWords(r *Row) string {
	if m := r.metricOf(); r.Kind == Request && m.Long != "" {
		return m.Long
	}
	return table.CutMiddle(words.Clean(r.Name), maxVerdictName, table.Style{ASCII: true})
}

// maxVerdictName limits the characters of a name in the verdict.
const maxVerdictName = 60

// perUnit returns the words to add to a time, such as " per step"; "" if totals are of whole captures.
func (d *Diff) perUnit(r *Row) string {
	if unit := d.unit(r); unit != perSecond.String() {
		return " per " + unit
	}
	return ""
}

// unit returns what a row's totals are divided by.
func (d *Diff) unit(r *Row) string {
	switch {
	case r.Kind.profiled():
		return d.per.String()
	case d.Before.Requests+d.After.Requests == 0:
		return perSecond.String()
	}
	return "request"
}

// telling returns the most telling number of the row: the total if profiled, otherwise the
// median, unless another one changed more than twice as much.
func (r *Row) telling() (telling *diffNumber) {
	most := 0.0
	numbers := [...]int{1, 2, 3, 0}
	if r.Kind.profiled() {
		numbers = [...]int{0, 1, 2, 3}
	}
	for _, i := range numbers {
		n := &diffNumbers[i]
		of := n.change(r)
		if telling != nil && (!of.Matters() || of.Size() <= 2*most || r.Kind.profiled() && most > 0) {
			continue
		}
		telling, most = n, 0
		if of.Matters() {
			most = of.Size()
		}
	}
	return telling
}

// movedBy returns the number that shows by how much the row moved the total. A median may be the same all the while.
func (r *Row) movedBy() *diffNumber {
	if r.Kind.profiled() {
		return &diffNumbers[0]
	}
	return &diffNumbers[3]
}

// waitsChanged reports whether requests wait longer or shorter than before, by a part of their time that everyone sees.
func (d *Diff) waitsChanged() bool {
	queued := func(l compare.Load) bool {
		return strings.HasPrefix(l.Name, series.Metrics[series.Queued].Name) && l.Change.Matters()
	}
	r := d.Row(Request, metric.Queue.Name)
	return r != nil && r.Changed() && d.part(r, r.Effect()) >= visiblePart || slices.ContainsFunc(d.Load, queued)
}

// paces returns what say has to say about each pace.
func (d *Diff) paces(say func(*pace.Pace) string) (says []string) {
	for i := range d.Paces {
		if text := say(&d.Paces[i]); text != "" {
			says = append(says, text)
		}
	}
	return says
}

// pacesTell reports whether paces already account for a load: tokens per second are higher if steps are larger.
func (d *Diff) pacesTell(l *compare.Load) bool {
	return slices.ContainsFunc(metric.Speeds[:], func(m *metric.Metric) bool { return m.Title == l.Name }) && d.annotated((*compare.Change).Tested)
}

// annotated reports whether the change of any pace of annotated steps satisfies is.
func (d *Diff) annotated(is func(*compare.Change) bool) bool {
	return slices.ContainsFunc(d.Paces, func(p pace.Pace) bool { return p.Annotated && is(&p.Change) })
}
