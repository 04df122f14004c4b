package stacks

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Stacks are where time went. Rows are by time in the innermost frame, the longest first; those
// in which threads wait come last.
type Stacks struct {
	Rows   [numOf][]Row
	Waited int64 // by threads, ns
	// Recorded tells which kinds of frames there are.
	Recorded host.Recorded
	// Seen tells what was recorded beside them.
	Seen host.Seen

	tree   *tree
	totals [numOf][]int64 // by stack
	syms   *trace.Symbols
	export bool // some is of Nsight Systems
	byRank bool
	work   bool
	graphs int64
}

// A Row is a stack with time in its innermost frame.
type Row struct {
	Rank  string // "" where ranks are pooled
	Self  int64  // in the innermost frame, ns
	Total int64  // and in frames entered from there, ns
	Share float64
	Did   host.Did // in the innermost frame

	at int32
	of *Stacks
}

// Sum sums up the stacks of all ranks. The window bounds the time of threads, and which kernels
// and copies count, as a whole.
func Sum(set *profile.Set, opt walk.Options) *Stacks {
	streams := make([]*collector, len(set.Streams))
	walk.EachStream(set, func(i int, stream profile.Stream) {
		c := collect(set, stream, &opt)
		c.launches, c.threads, c.index, c.last = nil, nil, nil, nil // the tree is all that is needed of it
		streams[i] = c
	})
	s := &Stacks{tree: newTree(), syms: set.Syms, byRank: opt.ByRank, export: set.Exports}
	for i, c := range streams {
		s.tree.merge(c.tree)
		s.Recorded.Join(&c.recorded)
		s.Seen.Join(&c.seen)
		s.work = s.work || c.work
		s.graphs = distribution.AddTimes(s.graphs, c.graphs)
		streams[i] = nil
	}
	for of := range numOf {
		s.totals[of] = s.tree.totals(of)
		s.list(of)
	}
	return s
}

// list makes the rows.
func (s *Stacks) list(of Of) {
	all := s.totals[of][bottom]
	for i, self := range s.tree.self[of] {
		if self == 0 {
			continue
		}
		n := &s.tree.nodes[i]
		row := Row{Self: self, Total: s.totals[of][i], Share: math.NaN(), Did: n.did, at: int32(i), of: s}
		if s.byRank {
			row.Rank = row.names(0)[0]
		}
		if n.isIdle() {
			s.Waited = distribution.AddTimes(s.Waited, self)
		} else {
			row.Share = distribution.Fraction(self, all)
		}
		s.Rows[of] = append(s.Rows[of], row)
	}
	slices.SortFunc(s.Rows[of], func(a, b Row) int {
		return cmp.Or(waitsLast(a.Did, b.Did), cmp.Compare(b.Self, a.Self), s.compare(a.at, b.at))
	})
}

// Code reports whether stacks tell where in its code a thread is.
func (s *Stacks) Code() bool { return s.Recorded.Code() || s.Seen.Samples || s.Seen.Backtraces }

// Missing says what was not recorded of the stacks.
func (s *Stacks) Missing() []string { return s.Recorded.Missing(&s.Seen, s.export) }

func waitsLast(a, b host.Did) int {
	switch {
	case a.Waits() == b.Waits():
		return 0
	case a.Waits():
		return 1
	}
	return -1
}

// compare orders stacks by the names in them, the innermost first: the numbers of symbols
// differ from run to run.
func (s *Stacks) compare(a, b int32) int {
	for a != b {
		x, y := &s.tree.nodes[a], &s.tree.nodes[b]
		if c := cmp.Or(strings.Compare(s.name(a), s.name(b)), cmp.Compare(x.did, y.did)); c != 0 {
			return c
		}
		a, b = x.around, y.around
	}
	return 0
}

// name returns the name of the innermost frame.
func (s *Stacks) name(at int32) string {
	n := &s.tree.nodes[at]
	if n.isIdle() {
		return "(idle)"
	}
	return s.syms.Name(n.name)
}

// names returns the names of the frames of a stack, the outermost first, from a depth on.
func (r *Row) names(from int32) []string {
	t := r.of.tree
	list := make([]string, max(0, t.depth[r.at]-from))
	at := r.at
	for i := len(list) - 1; i >= 0; i-- {
		list[i] = r.of.name(at)
		at = t.nodes[at].around
	}
	return list
}

// Frame is the innermost frame.
func (r *Row) Frame() string { return host.Short(r.of.name(r.at)) }

// Callers are the next frames, the inner one first, shortened, and the innermost range: "aten::item
// < sample() (scheduler.py:2210) in decode bs=2 step".
func (r *Row) Callers() string {
	const most = 3
	var list []string
	in := ""
	t := r.of.tree
	for at := t.nodes[r.at].around; at != bottom; at = t.nodes[at].around {
		if len(list) < most {
			list = append(list, host.Short(r.of.name(at)))
		} else if t.nodes[at].did == host.InRange {
			in = " in " + r.of.name(at)
			break
		}
	}
	return strings.Join(list, " < ") + in
}

// Stack is the whole stack, as other tools read it: see [table.FoldStack].
func (r *Row) Stack() string { return table.FoldStack(r.names(0)) }
