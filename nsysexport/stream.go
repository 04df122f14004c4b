package nsysexport

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// NewStream returns the rows of an export as a [profile.Stream]. rank tells which rank
// a process is; with a negative one its rows are left out. It may be called from
// several goroutines at once.
func NewStream(src *rows.Source, rank func(pid int32) int32) profile.Stream {
	return stream{src.Within(0, 0), rank}
}

type stream struct {
	src  *rows.Window
	rank func(pid int32) int32
}

// Within is the stream with what a window of time needs: see [profile.Within].
func (st stream) Within(from, to trace.Time) profile.Stream {
	return stream{st.src.Within(from, to), st.rank}
}

// walk is one walk over the rows of a stream. It remembers the ranks of processes,
// which rows change between all the time.
type walk struct {
	stream
	ranks  map[int32]int32
	recent [64]rankedPID // by the lowest bits of their numbers: most exports have fewer
}

// A rankedPID is a process of which the rank was asked for.
type rankedPID struct {
	pid, rank int32
	known     bool
}

func (st stream) walk() *walk { return &walk{stream: st, ranks: map[int32]int32{}} }

// rankOf returns the rank of a process, negative if it is left out.
func (w *walk) rankOf(pid int32) int32 {
	p := &w.recent[uint32(pid)%uint32(len(w.recent))]
	if p.known && p.pid == pid {
		return p.rank
	}
	rank, known := w.ranks[pid]
	if !known {
		rank = w.rank(pid)
		w.ranks[pid] = rank
	}
	*p = rankedPID{pid, rank, true}
	return rank
}

// event sets what rows of all kinds have, in place, which takes a good part of the time if it is
// copied. It returns false for processes that are left out.
func (w *walk) event(e *profile.Event, pid int32, start, end trace.Time, correlation uint32, name trace.Sym) bool {
	e.Start, e.End, e.Correlation, e.Name, e.Rank, e.PID = start, end, 0, name, w.rankOf(pid), pid
	if end < start {
		reportBackwards(w.src.Source)
	}
	if correlation != 0 {
		// Several processes may be one rank, if nobody tells them apart.
		e.Correlation = int64(pid)<<32 | int64(correlation)
	}
	return e.Rank >= 0
}

// reportBackwards reports a row that ends before it starts.
func reportBackwards(src *rows.Source) {
	src.Diag(trace.NsysBackwards, "", 0)
}

// Kernels yields kernels, and behind them the graphs that were traced as a whole.
func (st stream) Kernels(yield func(*profile.Kernel) bool) {
	w := st.walk()
	more := true
	var out profile.Kernel
	st.src.Kernels(func(k *rows.Kernel) bool {
		if w.event(&out.Event, k.PID, k.Start, k.End, k.Correlation, k.Name) {
			out.Device, out.Stream, out.OneBlock, out.Graph, out.Node = k.Device, k.Stream, k.OneBlock, false, int64(k.Node)
			more = yield(&out)
		}
		return more
	})
	if !more {
		return
	}
	names := map[uint32]trace.Sym{}
	st.src.GraphRuns(func(g *rows.GraphRun) bool {
		name, ok := names[g.Graph]
		if !ok {
			name = st.src.Options.Syms.Intern(graphName(g.Graph))
			names[g.Graph] = name
		}
		if !w.event(&out.Event, g.PID, g.Start, g.End, g.Correlation, name) || !g.Timed {
			return true
		}
		out.Device, out.Stream, out.OneBlock, out.Graph, out.Node = g.Device, g.Stream, 0, true, 0
		return yield(&out)
	})
}

// graphName is what a run of a whole graph is called, which has no name of its own.
func graphName(id uint32) string { return "CUDA graph " + strconv.FormatUint(uint64(id), 10) }

// Copies yields copies between memories, and behind them what filled memory.
func (st stream) Copies(yield func(*profile.Copy) bool) {
	w := st.walk()
	var names [math.MaxUint8 + 1]trace.Sym // by kind
	more := true
	var out profile.Copy
	st.src.Memcpys(func(c *rows.Memcpy) bool {
		if names[c.Kind] == 0 {
			names[c.Kind] = st.src.Options.Syms.Intern("[CUDA memcpy " + c.Kind.String() + "]")
		}
		if w.event(&out.Event, c.PID, c.Start, c.End, c.Correlation, names[c.Kind]) {
			out.Device, out.Stream, out.Bytes, out.Kind = c.Device, c.Stream, int64(c.Bytes), profile.CopyKind{From: memoryOf(c.Src), To: memoryOf(c.Dst)}
			more = yield(&out)
		}
		return more
	})
	if !more {
		return
	}
	name := st.src.Options.Syms.Intern(profile.MemsetName)
	st.src.Memsets(func(m *rows.Memset) bool {
		if !w.event(&out.Event, m.PID, m.Start, m.End, m.Correlation, name) {
			return true
		}
		out.Device, out.Stream, out.Bytes, out.Kind = m.Device, m.Stream, int64(m.Bytes), profile.CopyKind{From: profile.NoMemory, To: memoryOf(m.Kind)}
		return yield(&out)
	})
}

// memoryKinds are the numbers of CUPTI as kinds of memory.
var memoryKinds = func() (kinds [rows.UnknownMemory]profile.Memory) {
	for n := range kinds {
		kinds[n] = profile.MemoryOf(rows.MemoryKind(n).String())
	}
	return kinds
}()

func memoryOf(kind rows.MemoryKind) profile.Memory {
	if kind >= rows.UnknownMemory {
		return profile.UnknownMemory
	}
	return memoryKinds[kind]
}

// Calls yields the calls into the CUDA runtime and driver.
func (st stream) Calls(yield func(*profile.Call) bool) {
	w := st.walk()
	var names []trace.Sym // without versions, by symbol; 0 is not looked up yet
	var out profile.Call
	st.src.API(func(c *rows.Call) bool {
		for int(c.Name) >= len(names) {
			names = append(names, make([]trace.Sym, len(names)+64)...)
		}
		if names[c.Name] == 0 {
			names[c.Name] = st.src.Options.Syms.Intern(rows.APIName(st.src.Options.Syms.Name(c.Name)))
		}
		if !w.event(&out.Event, c.PID, c.Start, c.End, c.Correlation, names[c.Name]) {
			return true
		}
		out.TID, out.Result = int64(c.TID), c.Return
		return yield(&out)
	})
}

// Ranges yields the NVTX ranges that have a duration.
func (st stream) Ranges(yield func(*profile.Range) bool) {
	w := st.walk()
	type key struct{ domain, text trace.Sym }
	names := map[key]trace.Sym{}
	var out profile.Range
	st.src.Ranges(func(r *rows.Range) bool {
		if r.Kind == rows.MarkInstant {
			return true
		}
		name := r.Text
		if r.Domain != 0 {
			k := key{r.Domain, r.Text}
			if name = names[k]; name == 0 {
				name = st.src.Options.Syms.Intern(st.src.Options.Syms.Name(r.Domain) + ":" + st.src.Options.Syms.Name(r.Text))
				names[k] = name
			}
		}
		if !w.event(&out.Event, r.PID, r.Start, r.End, 0, name) {
			return true
		}
		out.TID, out.Open, out.Style = int64(r.TID), r.Open, profile.PushPop
		if r.Kind == rows.MarkStartEnd {
			out.Style = profile.StartEnd
		}
		return yield(&out)
	})
}

// GraphNodes yields the nodes of graphs, with the calls that made them: see [profile.GraphNodes].
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

// Frames yields the calls into the operating system.
func (st stream) Frames(yield func(*profile.Frame) bool) {
	w := st.walk()
	var out profile.Frame
	st.src.OS(func(c *rows.Call) bool {
		if !w.event(&out.Event, c.PID, c.Start, c.End, 0, c.Name) {
			return true
		}
		out.TID, out.Kind = int64(c.TID), profile.SystemFrame
		return yield(&out)
	})
}

// Outline returns the facts about the processes of an export without reading
// what they did: profiles without events, by process id, which last from the first event of
// the export to the last.
func Outline(src *rows.Source) []*profile.Profile {
	r := newProfiler(src)
	for _, p := range src.Processes {
		r.file(p.PID)
	}
	for _, t := range src.Threads {
		r.file(t.PID)
	}
	for pid := range src.StreamUsers {
		r.file(pid)
	}
	for _, rank := range src.Ranks {
		r.file(rank.PID)
	}
	if len(r.profiles) == 0 {
		strangers(src, func(pid int32) { r.file(pid) })
	}
	var outlines []*profile.Profile
	first, last := src.Extent()
	for _, pid := range slices.Sorted(maps.Keys(r.profiles)) {
		p := r.profiles[pid]
		p.Profile.First, p.Profile.Last, p.Profile.Total = first, last, 1
		outlines = append(outlines, p.Profile)
	}
	return outlines
}

// strangers calls f for the processes of rows. It reads whole tables, which is for
// exports that name no process at all.
func strangers(src *rows.Source, f func(pid int32)) {
	st := NewStream(src, func(pid int32) int32 {
		f(pid)
		return -1
	})
	st.Kernels(func(*profile.Kernel) bool { return true })
	st.Copies(func(*profile.Copy) bool { return true })
	st.Calls(func(*profile.Call) bool { return true })
	st.Ranges(func(*profile.Range) bool { return true })
}
