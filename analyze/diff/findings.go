package diff

import (
	"math"
	"regexp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Findings returns the changes and rows that the verdict reports, as findings.
func (d *Diff) Findings() []finding.Finding {
	var list []finding.Finding
	for i, side := range d.sides() {
		for _, x := range side.Within {
			list = append(list, x.Finding(sideWords[i]))
		}
	}
	reasons, _ := d.reasons()
	list = append(list, reasons...)
	for _, r := range d.toldRows() {
		list = append(list, d.finding(r))
	}
	return list
}

// reasons returns what changed in the pace of servers and in the load, as the verdict reports
// it, without what is muted. follow is the load that merely follows from that.
func (d *Diff) reasons() (list []finding.Finding, follow []*compare.Load) {
	tell := func(f finding.Finding) {
		f.Severity, f.CostBasis = finding.Info, finding.RequestTime
		if f.Text != "" && !slices.Contains(d.mutedReasons, f.Subkind) {
			list = append(list, f)
		}
	}
	each := func(what string, text func(*pace.Pace) string, sure func(*pace.Pace) *compare.Change) {
		for i := range d.Paces {
			p := &d.Paces[i]
			before, after := p.Took()
			c := sure(p)
			tell(finding.Finding{Kind: finding.Change, Subkind: what + " of " + p.Steps, Text: text(p), Confidence: c.Sure, P: finding.Chance(c.Change.P), At: p.At(),
				Metric: finding.Metric{Name: p.Steps + " for the same work", Unit: table.Duration, Before: before, After: after}})
		}
	}
	for _, f := range d.slowed {
		if !slices.Contains(d.mutedReasons, f.Subkind) {
			list = append(list, f)
		}
	}
	work := func(p *pace.Pace) *compare.Change { return &p.Work.Change }
	waits := d.waitsChanged()
	each("pace", (*pace.Pace).Slower, (*pace.Pace).Told)
	each("limit", func(p *pace.Pace) string { return p.Capped(waits) }, func(*pace.Pace) *compare.Change {
		return &compare.Change{Change: compare.UnknownChange, Sure: finding.Likely}
	})
	for i := range d.Load {
		switch l := &d.Load[i]; {
		case !l.Change.Matters() || d.pacesTell(l):
		case l.Follows:
			follow = append(follow, l)
		default:
			tell(finding.Finding{Kind: finding.Load, Subkind: l.Name, Text: l.Words(), Confidence: l.Change.Sure, P: finding.Chance(l.Change.Change.P),
				Metric: finding.Metric{Name: l.Name, Unit: table.Number, Before: l.Before, After: l.After}})
		}
	}
	each("size", (*pace.Pace).Busier, work)
	each("size", (*pace.Pace).Apart, work)
	return list, follow
}

// Mute removes the findings that covers selects from the findings and from the verdict, which only counts them.
func (d *Diff) Mute(covers func(*finding.Finding) bool) {
	for i, side := range d.sides() {
		n := len(side.Within)
		side.Within = slices.DeleteFunc(side.Within, func(x Within) bool { f := x.Finding(sideWords[i]); return covers(&f) })
		d.mutedWithin += n - len(side.Within)
	}
	for _, r := range d.toldRows() {
		if f := d.finding(r); covers(&f) {
			d.muted = append(d.muted, r)
		}
	}
	reasons, _ := d.reasons()
	for i := range reasons {
		if f := &reasons[i]; covers(f) {
			d.mutedReasons = append(d.mutedReasons, f.Subkind)
		}
	}
	d.verdict = d.words(d.locate)
}

func (d *Diff) finding(r *Row) finding.Finding {
	n := r.telling()
	change := n.change(r)
	before, after := n.value(&r.Before), n.value(&r.After)
	basis := finding.RequestTime
	if r.Kind.profiled() {
		basis = finding.GPUTime
	}
	return finding.Finding{
		Kind: finding.Change, Subkind: r.Kind.String() + " " + r.Name + " " + r.Rank, At: d.locate.at(r), Severity: finding.Info,
		Confidence: change.Sure, Text: d.plain(r), P: finding.Chance(change.Change.P),
		Metric: finding.Metric{Name: n.name, Unit: table.Duration, Before: before, After: after}, Cost: d.cost(r), CostBasis: basis,
		Evidence: []finding.Evidence{finding.Sentence("%s %s", r.Kind, r.Name).In("diff",
			finding.Row("of", r.Kind.String(), "name", r.Name), n.name+"_ratio", change.Change.Ratio)},
	}
}

// operatorKinds are the kinds of rows for operators, by their kind in a ByName.
var operatorKinds = [...]Kind{Operator, OperatorGPU}

// addOperators adds, for every call of an operator, the time that its thread spent in it but
// in no operator within, and the time of the device work it launched.
func (d *Collected) addOperators(set *profile.Set, window *profilewalk.Options, pieces *compare.Pieces, names []string) {
	streams := make([]*profilewalk.ByName[diffGroup], len(set.Streams))
	operators.Each(set, *window, func(i int) operators.Visitor {
		by := profilewalk.NewByName[diffGroup](set)
		streams[i] = by
		return operators.Visitor{
			Call: func(rank, _ int32, name trace.Sym, at trace.Time, self int64) {
				by.Of(rank, name, 0).add(pieces.At(at), pieces.N(), self, d.in)
			},
			Work: func(k *profile.Kernel, name trace.Sym) {
				by.Of(k.Rank, name, 1).add(pieces.At(k.Start), pieces.N(), k.Dur(), d.in)
			},
		}
	})
	for _, by := range streams {
		for i, key := range by.Keys {
			d.put(diffKey{operatorKinds[key.Kind], set.Syms.Name(key.Name), names[key.Rank]}, &by.Groups[i])
		}
	}
}

// A gapTimes is how long the devices of a rank waited, in ns, by what the host did and by piece.
type gapTimes map[string][]int64

// addGaps adds what the host did while devices waited for it, with one value for each piece.
func (d *Collected) addGaps(set *profile.Set, window *profilewalk.Options, pieces *compare.Pieces, names []string) {
	collector := gaps.Collect(set)
	gpu.Measure(set, gpu.Options{From: window.From, To: window.To, Gaps: collector.Add})
	ranks := make([]gapTimes, len(set.Ranks))
	collector.Measure(gaps.Options{From: window.From, To: window.To, Each: func(rank int32, c *gaps.Cause, gap trace.Time, ns int64) {
		if ranks[rank] == nil {
			ranks[rank] = gapTimes{}
		}
		name := gapName(c)
		at := &order.Memo(ranks[rank], name, func() []int64 { return make([]int64, pieces.N()) })[pieces.At(gap)]
		*at = distribution.AddTimes(*at, ns)
	}})
	groups := map[diffKey]*diffGroup{}
	for rank, times := range ranks {
		for name, byPiece := range times {
			for piece, ns := range byPiece {
				if ns > 0 {
					addTo(groups, diffKey{HostCause, name, names[rank]}).add(piece, pieces.N(), ns, d.in)
				}
			}
		}
	}
	d.putAll(groups)
}

// line matches the line number of a function, which differs between versions.
var line = regexp.MustCompile(`:\d+\)`)

// gapName names a cause the same way in captures of different versions: "after a sync call: Python in sample() (scheduler.py)".
func gapName(c *gaps.Cause) string {
	name := gpu.ReasonWords[c.Reason] + ": " + c.Activity.String()
	if where := line.ReplaceAllString(c.Where(), ")"); where != "" {
		name += ", " + where
	}
	return name
}

// at returns where a row changed: the only rank on which it did, or that has it; otherwise the
// role that its ranks share; otherwise everywhere.
func (r *diffRows) at(of *Row) place.Location {
	names := []string{of.Rank}
	if of.Rank == "" {
		if names = r.only(of); names == nil {
			for _, row := range r.ranks(of) {
				names = append(names, row.Rank)
			}
		}
	}
	var at place.Location
	for i, name := range names {
		switch rank := place.Named(name); {
		case rank.Rank == trace.NoRank && rank.Role == request.Other: // not the name of a rank
			return place.Location{}
		case i == 0:
			at = rank
		case rank.Role != at.Role || rank.Role == request.Other:
			return place.Location{}
		default:
			at = place.Location{Scope: place.WholeRole, Role: at.Role}
		}
	}
	return at
}

// where names the ranks on which a row changed, if it did not change on the others: " on TP1 only".
func (r *diffRows) where(of *Row) string {
	names := r.only(of)
	if names == nil {
		return ""
	}
	return " on " + words.Some(names, compare.MaxNames) + " only"
}

// only returns the ranks on which a row changed, if it did not change on the others; nil if it changed on all, or if that is
// unknown. It is called for changed rows only, and the p-values of their ranks are corrected for the number of ranks alone.
func (r *diffRows) only(of *Row) []string {
	ranks := r.ranks(of)
	p := order.EachRow(ranks, func(r *Row) float64 { return r.Mean.Change.P })
	var names []string
	least, most := math.Inf(1), 0.0
	for i, p := range significance.Holm(p) {
		row := &ranks[i]
		if row.Mean.Change.P = p; p <= compare.Alpha {
			row.Mean.Sure = finding.Certain
		}
		switch {
		case !row.Mean.Tested():
			return nil
		case row.Mean.Matters():
			names = append(names, row.Rank)
			least = min(least, row.Mean.Size())
		default:
			most = max(most, row.Mean.Size())
		}
	}
	// Ranks with half as large a change, or larger, may have changed as well, without enough data to show it.
	if len(names) == 0 || len(names) == len(ranks) || 2*most > least {
		return nil
	}
	return names
}
