package nsysexport

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// NewStream returns the rows of an export as a [profile.Stream]. rank returns the rank of a process; if
// negative, its rows are omitted. It may be called from several goroutines at once.
func NewStream(src *rows.Source, rank func(pid int32) int32) profile.Stream {
	return stream{src.Within(0, 0), rank}
}

type stream struct {
	src  *rows.Window
	rank func(pid int32) int32
}

// Within returns the stream restricted to the rows that a time window needs: see [profile.Within].
func (st stream) Within(from, to trace.Time) profile.Stream {
	return stream{st.src.Within(from, to), st.rank}
}

// walk is a walk over the rows of a stream. Its methods pass each row in terms of package profile. It remembers
// the ranks of processes, as consecutive rows often belong to different processes.
type walk struct {
	stream
	ranks  map[int32]int32
	recent [64]rankedPID // by the lowest bits of the pid: most exports have fewer processes
	// lenient: the caller reports faulty rows itself.
	lenient bool
}

// A rankedPID is a process with its rank.
type rankedPID struct {
	pid, rank int32
	known     bool
}

func (st stream) walk() *walk { return &walk{stream: st, ranks: map[int32]int32{}} }

// rankOf returns the rank of a process, negative if its rows are omitted.
func (w *walk) rankOf(pid int32) int32 {
	p := &w.recent[uint32(pid)%uint32(len(w.recent))]
	if p.known && p.pid == pid {
		return p.rank
	}
	rank := order.Memo(w.ranks, pid, func() int32 { return w.rank(pid) })
	*p = rankedPID{pid, rank, true}
	return rank
}

// event sets the common fields of an event in place, since copying takes a good part of the time. It returns
// false if the process is omitted.
func (w *walk) event(e *profile.Event, pid int32, start, end trace.Time, correlation uint32, name trace.Sym) bool {
	e.Start, e.End, e.Correlation, e.Name, e.Rank, e.PID = start, end, 0, name, w.rankOf(pid), pid
	if end < start && !w.lenient {
		reportBackwards(w.src.Source)
	}
	if correlation != 0 {
		// Several processes may count as one rank, if nothing distinguishes them.
		e.Correlation = int64(pid)<<32 | int64(correlation)
	}
	return e.Rank >= 0
}

// reportBackwards reports a row that ends before it starts.
func reportBackwards(src *rows.Source) {
	src.Diag(trace.NsysBackwards, "", 0)
}

// plain adapts a yield function that does not need the row of the table.
func plain[T, Row any](yield func(*T) bool) func(*T, *Row) bool {
	return func(x *T, _ *Row) bool { return yield(x) }
}

func (st stream) Kernels(yield func(*profile.Kernel) bool) {
	if w := st.walk(); w.kernels(plain[profile.Kernel, rows.Kernel](yield)) {
		w.graphRuns(plain[profile.Kernel, rows.GraphRun](yield))
	}
}

func (st stream) Copies(yield func(*profile.Copy) bool) {
	if w := st.walk(); w.copies(plain[profile.Copy, rows.Memcpy](yield)) {
		w.fills(plain[profile.Copy, rows.Memset](yield))
	}
}

func (st stream) Calls(yield func(*profile.Call) bool) {
	st.walk().calls(plain[profile.Call, rows.Call](yield))
}

func (st stream) Ranges(yield func(*profile.Range) bool) {
	names := rangeNames{st.src.Options.Syms, map[[2]trace.Sym]trace.Sym{}}
	st.walk().ranges(func(r *profile.Range, row *rows.Range) bool {
		if row.Kind == rows.MarkInstant {
			return true
		}
		r.Name = names.nameOf(row)
		return yield(r)
	})
}

// GraphNodes yields the nodes of graphs, with the calls that created them: see [profile.GraphNodes].
func (st stream) GraphNodes(yield func(*profile.GraphNode) bool) {
	w := st.walk()
	var out profile.GraphNode
	st.src.GraphNodes(func(g *rows.GraphNode) bool {
		if !w.event(&out.Event, g.PID, g.Start, g.Start, 0, 0) {
			return true
		}
		out.TID, out.Node, out.Original = int64(g.TID), int64(g.Node), int64(g.Original)
		return yield(&out)
	})
}

func (st stream) Frames(yield func(*profile.Frame) bool) {
	st.walk().systemCalls(plain[profile.Frame, rows.Call](yield))
}

func (st stream) Samples(yield func(*profile.Sample) bool) { st.walk().samples(yield) }

func (st stream) Runs(yield func(*profile.Run) bool) { st.walk().runs(yield) }

// CounterValues yields the GPU memory that processes allocated since the recording began, and then the samples
// of GPUs and network cards. GPU metrics belong to the machine, unless only one process is known to use the
// GPU.
func (st stream) CounterValues(yield func(*profile.CounterValue) bool) {
	if w := st.walk(); w.memory(plain[profile.CounterValue, rows.MemoryEvent](yield)) {
		w.metrics(func(x *profile.CounterValue, _ int32, _ *rows.Metric) bool { return yield(x) })
	}
}
