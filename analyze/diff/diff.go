package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/measured"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Capture is one input of a comparison.
type Capture struct {
	Label    string       // the user's name for it
	Requests *request.Set // nil if there are none
	Profiles *profile.Set // has no Ranks if there are none
	Series   *series.Set  // from logs and metrics; nil if there are none
	// Inventory is what its files say about themselves; it may be nil.
	Inventory *inventory.Inventory
	// Operators and Gaps ask for more tables: operators of PyTorch, and what the host did while devices waited.
	Operators, Gaps bool
	// Some reports that Requests is only a sample of the requests that ran, so that the load of a step is unknown.
	Some bool
	// From and To bound the comparison to requests that begin in [From, To), and to events of
	// Profiles that overlap [From, To]; 0 is open.
	From, To trace.Time

	// SLO holds the objectives by which Requests are judged; nil if there are none.
	SLO []requests.Objective
}

// Options say how captures are compared.
type Options struct {
	ByRank bool // make a row for every rank and name
}

// A Diff is the comparison of two captures.
type Diff struct {
	Before, After Side
	Setup         []setup.Setting // only those that differ
	Load          []compare.Load
	Paces         []pace.Pace // of servers, decode first
	Rows          []Row       // requests first; then what changed, by how much it moved the total
	Operators     []Row       // if asked for; sorted like Rows
	Gaps          []Row       // if asked for; sorted like Rows

	per         perStep // what profiled totals are divided by
	onDevice    bool    // the time of a step is that of its work on the device
	work        sameWork
	byRank      bool
	whole       map[diffKey]int64 // see addUp
	approximate int               // number of rows with approximate percentiles
	verdict     string
	swapped     [2][]*Row // by side: kernels that only this capture has
	muted       []*Row    // rows that the verdict only counts
	mutedWithin int       // how many changes within captures are muted
	// mutedReasons are the subkinds of muted findings about paces and the load.
	mutedReasons []string
	locate       *diffRows         // makes rows, also by rank
	alike        string            // see whyAlike
	slowed       []finding.Finding // ranks, but not all of them, whose GPU clocks seem to have changed
}

// A diffKey identifies a group of durations.
type diffKey struct {
	Kind Kind
	Name string
	Rank string // "" if unknown, or if ranks are pooled
}

func (k diffKey) compare(o diffKey) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), strings.Compare(k.Name, o.Name), strings.Compare(k.Rank, o.Rank))
}

// A diffGroup holds the durations of one key in one input, by piece of the capture.
type diffGroup struct {
	pieces    []distribution.Sample
	neighbors significance.Neighbors
	blocks    profilewalk.Blocks // of the launches of a kernel
}

func (g *diffGroup) add(piece, pieces int, dur int64, in *distribution.Store) {
	if g.pieces == nil {
		g.pieces = make([]distribution.Sample, pieces)
	}
	g.pieces[piece].Add(dur, in)
}

// diffUnits are the numbers of requests or steps in every piece of a capture, by rank; "" is all ranks together.
type diffUnits map[string][]float64

func (u diffUnits) add(rank string, piece, pieces int, n float64) {
	if u[rank] == nil {
		u[rank] = make([]float64, pieces)
	}
	u[rank][piece] += n
}

// Compare compares two captures.
func Compare(before, after *Collected, opt Options) *Diff {
	sides := [2]*Collected{before, after}
	d := &Diff{per: commonStep(before, after), byRank: opt.ByRank}
	d.onDevice = (before.hostAhead || after.hostAhead) && before.periods[d.per] != nil && after.periods[d.per] != nil
	for _, side := range sides {
		side.settle(d.per, d.onDevice)
	}
	// If each capture has a single rank, the two are the same one, whatever files call it.
	if b, a := before.profileRanks, after.profileRanks; len(b) == 1 && len(a) == 1 && b[0] != a[0] {
		after.renameRank(a[0], b[0])
	}
	if d.per == perSecond {
		d.work = matchWork(sides)
	}
	d.Before, d.After = before.side, after.side
	d.Setup = setup.Compare(before.setup, after.setup)
	d.Load = slices.Concat(compareLoads(before, after, metric.Loads), compareShares(before, after), compareLoads(before, after, metric.Speeds[:]), measured.Compare(&before.measured, &after.measured, before.captures.Whole()))
	d.Paces = pace.Compare(before.paces, after.paces, uint8(d.per), d.onDevice, before.captures.Whole())
	d.locate = newDiffRows(sides, &d.approximate)
	d.Rows = d.locate.rows(opt.ByRank)
	d.divide()
	d.setAside()
	d.correct()
	d.matchRenamed()
	for _, rows := range [][]Row{d.Rows, d.Operators, d.Gaps} {
		sortRows(rows)
	}
	d.addUp()
	d.swapped = d.onlyKernels()
	if d.slowed = d.unexplained(compare.ClocksOfRanks(d.locate.kernelsByRank())); len(d.slowed) == 0 {
		d.alike = d.whyAlike()
	}
	d.keepWithin()
	d.verdict = d.words(d.locate)
	return d
}

// divide moves the rows of operators and gaps to lists of their own.
func (d *Diff) divide() {
	var rest []Row
	for _, r := range d.Rows {
		switch r.Kind {
		case Operator, OperatorGPU:
			d.Operators = append(d.Operators, r)
		case HostCause:
			d.Gaps = append(d.Gaps, r)
		default:
			rest = append(rest, r)
		}
	}
	d.Rows = rest
}

// setAside marks rows that only one capture has if the captures record different spans: nothing shows that they are a change.
func (d *Diff) setAside() {
	if !slices.ContainsFunc(d.Setup, func(s setup.Setting) bool { return slices.Contains(setup.Recorded, s.Name) }) {
		return
	}
	for i := range d.Rows {
		if r := &d.Rows[i]; r.only() && !r.Kind.profiled() {
			r.elsewhere = true
			for _, c := range r.changes() {
				c.Change = compare.UnknownChange
			}
		}
	}
}

// correct corrects P for the number of questions asked at once. What leads a comparison is one
// family, everything that may explain it another, so that many kernels do not hide a change
// that everyone sees. Operators and gaps, asked for separately, are comparisons of their own.
func (d *Diff) correct() {
	var lead, rest []*compare.Change
	for i := range d.Load {
		lead = append(lead, &d.Load[i].Change)
	}
	for i := range d.Paces {
		p := &d.Paces[i]
		lead = append(lead, &p.Change, &p.Work.Change)
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		leads := r.leading()
		lead = append(lead, leads...)
		for _, c := range r.changes() {
			if !slices.Contains(leads, c) {
				rest = append(rest, c)
			}
		}
	}
	compare.Correct(lead, families)
	compare.Correct(rest, families)
	for _, rows := range [][]Row{d.Operators, d.Gaps} {
		var all []*compare.Change
		for i := range rows {
			all = append(all, rows[i].changes()...)
		}
		compare.Correct(all, 1)
	}
}

// leading returns the numbers of a row that, with the load, lead a comparison: medians and
// means of what users notice, how long steps take, and where the time of devices went.
func (r *Row) leading() []*compare.Change {
	switch {
	case r.noticed():
		return []*compare.Change{&r.P50, &r.Mean}
	case r.Kind == Step || r.Kind == GPU:
		return []*compare.Change{&r.Total}
	}
	return nil
}

// families is the number of families of questions that share compare.Alpha.
const families = 2

// sortRows sorts requests before devices, and changed rows before others; changed rows by
// their cost or saving, others by how much they moved the total.
func sortRows(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(order.Bool(a.Kind.profiled(), b.Kind.profiled()), order.Bool(b.Changed(), a.Changed()),
			cmp.Compare(distribution.Abs(b.Effect()), distribution.Abs(a.Effect())), cmp.Compare(distribution.Abs(b.Moved()), distribution.Abs(a.Moved())), a.diffKey.compare(b.diffKey))
	})
}

// Row returns the row of a kind and name for all ranks together, or nil.
func (d *Diff) Row(kind Kind, name string) *Row {
	i := slices.IndexFunc(d.Rows, func(r Row) bool { return r.diffKey == diffKey{kind, name, ""} })
	if i < 0 {
		return nil
	}
	return &d.Rows[i]
}
