package host

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Stacks are where time went, by stack.
type Stacks struct {
	Waited int64 // by threads, ns
	// Frames says which kinds of frames were recorded.
	Frames RecordedFrames
	// Threads says what else was recorded of threads.
	Threads RecordedThreads

	tree   *tree
	totals [numOf][]int64 // by stack
	// rows are the stacks with time in their innermost frame, the longest first; those in
	// which threads wait come last.
	rows   [numOf][]int32
	syms   *trace.Symbols
	export bool // some inputs are exports of Nsight Systems
	byRank bool
	work   bool
	graphs int64
}

// A Row is a stack with time in its innermost frame. Rows are made when needed: there may be millions.
type Row struct {
	s  *Stacks
	of TimeOf
	at int32
}

// self returns the time in the innermost frame, ns.
func (r Row) self() int64 { return r.s.tree.self[r.of][r.at] }

// activity returns what the thread did in the innermost frame.
func (r Row) activity() Activity { return r.s.tree.nodes[r.at].did }

// Sum sums up the stacks of all ranks. The window bounds the time of threads, and selects kernels and
// copies as a whole. Kernels of graphs are put below what captures know of them; captures may be nil.
func Sum(set *profile.Set, opt profilewalk.Options, captures Captures) *Stacks {
	s := &Stacks{syms: set.Syms, byRank: opt.ByRank, export: set.Exports}
	var mu sync.Mutex
	profilewalk.EachStream(set, func(i int, stream profile.Stream) {
		c := collect(set, i, stream, &opt, captures)
		mu.Lock()
		defer mu.Unlock()
		s.join(c)
	})
	if s.tree == nil {
		s.tree = newTree()
	}
	s.tree.index = nil // no stack is entered any more
	for of := range numOf {
		s.totals[of] = s.tree.totals(of)
		s.list(of)
	}
	return s
}

// join adds what was read of a stream. The numbers of stacks depend on which stream comes first, and
// nothing depends on them.
func (s *Stacks) join(c *collector) {
	if s.tree == nil {
		s.tree = c.tree
	} else {
		s.tree.merge(c.tree)
	}
	s.Frames.Join(&c.recorded)
	s.Threads.Join(&c.seen)
	s.work = s.work || c.work
	s.graphs = distribution.AddTimes(s.graphs, c.graphs)
}

// list finds the rows, and their order.
func (s *Stacks) list(of TimeOf) {
	for i, self := range s.tree.self[of] {
		if self == 0 {
			continue
		}
		if s.tree.nodes[i].isIdle() {
			s.Waited = distribution.AddTimes(s.Waited, self)
		}
		s.rows[of] = append(s.rows[of], int32(i))
	}
	slices.SortFunc(s.rows[of], func(a, b int32) int {
		x, y := Row{s, of, a}, Row{s, of, b}
		return cmp.Or(order.Bool(x.activity().waits(), y.activity().waits()), cmp.Compare(y.self(), x.self()), s.compare(a, b))
	})
}

// Code reports whether stacks show where in its code a thread is.
func (s *Stacks) Code() bool { return s.Frames.Code() || s.Threads.Samples || s.Threads.Backtraces }

// Missing says what was not recorded of the stacks.
func (s *Stacks) Missing() []string { return s.Frames.Missing(&s.Threads, s.export) }

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

// names returns the names of the frames of a stack, the outermost first.
func (r Row) names() []string {
	t := r.s.tree
	list := make([]string, t.depth[r.at])
	at := r.at
	for i := len(list) - 1; i >= 0; i-- {
		list[i] = r.s.name(at)
		at = t.nodes[at].around
	}
	return list
}

// callers returns the next frames, shortened, the innermost first, and the innermost range: "aten::item
// < sample() (scheduler.py:2210) in decode bs=2 step".
func (r Row) callers() string {
	const most = 3
	var list []string
	in := ""
	t := r.s.tree
	for at := t.nodes[r.at].around; at != bottom; at = t.nodes[at].around {
		if len(list) < most {
			list = append(list, Short(r.s.name(at)))
		} else if t.nodes[at].did == InRange {
			in = " in " + r.s.name(at)
			break
		}
	}
	return strings.Join(list, " < ") + in
}

// Titles and names of the tables, and what their column self means.
var (
	titles = [numOf]string{CPU: "CPU time by stack", GPU: "GPU time by the stack that launched it"}
	names  = [numOf]string{CPU: "cpu", GPU: "gpu"}
	selves = [numOf]string{CPU: "host time in the innermost frame itself", GPU: "time of the kernel or copy"}
)

// Reports returns the tables: where the time of threads went, and that of devices.
func (s *Stacks) Reports() []*table.Table { return []*table.Table{s.report(CPU), s.report(GPU)} }

func (s *Stacks) report(of TimeOf) *table.Table {
	row := func(at *int32) Row { return Row{s, of, *at} }
	text := func(name, doc string, cell func(Row) string) table.Field[int32] {
		return table.TextColumn(name, doc, func(at *int32) string { return cell(row(at)) })
	}
	ns := func(name, doc string, cell func(Row) int64) table.Field[int32] {
		return table.NsColumn(name, doc, func(at *int32) int64 { return cell(row(at)) })
	}
	var fields []table.Field[int32]
	if s.byRank {
		fields = append(fields, text("rank", "rank, or name of a process that is not a rank", func(r Row) string { return r.names()[0] }))
	}
	fields = append(fields,
		table.ShareColumn("time", "self as a share of that of all rows; empty for waits", func(at *int32) float64 {
			if s.tree.nodes[*at].isIdle() {
				return math.NaN()
			}
			return distribution.Fraction(row(at).self(), s.totals[of][bottom])
		}),
		ns("self", selves[of], Row.self))
	if of == CPU {
		fields = append(fields,
			ns("total", "self plus time in frames called from there, without waits", func(r Row) int64 { return s.totals[of][r.at] }),
			text("did", "activity of the thread in the innermost frame", func(r Row) string { return r.activity().String() }))
	}
	frame := text("frame", "innermost frame", func(r Row) string { return Short(s.name(r.at)) })
	callers := text("callers", "frames around it, innermost first", Row.callers)
	stack := text("stack", "all frames, outermost first, joined by semicolons", func(r Row) string { return table.FoldStack(r.names()) })
	frame.Most, callers.Most, stack.Detail = maxFrame, table.MaxName, true
	t := table.New(fmt.Sprintf("sgtrace.report.stacks.%s/v1", names[of]), titles[of], s.rows[of], append(fields, frame, callers, stack))
	t.Folding = &table.Folding{Stack: "stack", Weight: "self"}
	s.note(t, of)
	return t
}

// maxFrame is how wide the innermost frame is for people, who see its callers next to it.
const maxFrame = 50

// note says what the rows leave out, and what was not recorded.
func (s *Stacks) note(t *table.Table, of TimeOf) {
	switch {
	case of == CPU && s.Waited > 0:
		t.Note("threads waited %s, in the last rows (lock, waiting): shares are without this; in stacks, it is the frame (idle)", table.InWords(s.Waited))
	case of == GPU && !s.work:
		t.Note("no kernels or copies were recorded")
		return
	}
	for _, text := range s.Missing() {
		t.Note("%s", text)
	}
	if of == GPU {
		profilewalk.NoteGraphs(t, s.graphs)
	}
}
