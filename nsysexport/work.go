package nsysexport

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// gpuFolder returns the folder for rows of a device.
func (r *reader) gpuFolder(pid, device int32) string {
	if device < 0 {
		return "CUDA"
	}
	name, gpu := "", r.known().gpuOf(pid, device)
	number := gpu
	if gpu < 0 {
		number = device
	}
	for _, g := range r.src.Meta.GPUs {
		if g.ID == int64(number) && g.Name != "" && (gpu >= 0 || len(r.src.Meta.GPUs) == 1) {
			name = " (" + g.Name + ")"
		}
	}
	return "CUDA > GPU " + numberText(number) + name
}

// stream returns the row of a stream.
func (r *reader) stream(p *piece, at *rows.Place) int32 {
	key := rowKey{layerStream, uint32(at.Device), at.Stream}
	if p.lastKey == key {
		return p.lastRow
	}
	return p.row(key, func() profile.Row {
		return profile.Row{Kind: profile.RowStream, PID: int64(at.Device), PIDText: numberText(at.Device), TID: int64(at.Stream),
			TIDText: numberText(at.Stream), Name: "stream " + numberText(at.Stream), Folder: r.gpuFolder(p.pid, at.Device)}
	})
}

// place adds the arguments about where something ran.
func (r *reader) place(at *rows.Place) {
	r.list = r.list.Int(r.keys.device, int64(at.Device)).Int(r.keys.context, int64(at.Context)).Int(r.keys.stream, int64(at.Stream))
}

// work adds an event of a device; args adds arguments after the correlation.
func (r *reader) work(c category, e *profile.Event, at *rows.Place, args func()) (p *piece, row, event int32) {
	p = r.saw(e)
	row, event = r.stream(p, at), profile.NoEvent
	if r.filter.Fingerprint && profile.IsPossible(e.Start) && profile.IsPossible(e.End) {
		p.prints.add(profile.Fingerprint{Time: e.Start, Dur: e.Dur(), Name: e.Name, Row: row})
	}
	if r.keeps(c, e.Name, e.Start, e.End) {
		if r.put != nil {
			r.list = r.list[:0].Int(r.keys.correlation, int64(at.Correlation))
			args()
		}
		event = r.add(p, row, c, e)
	}
	if at.Correlation != 0 && r.sparse && !r.filter.IndexOnly {
		p.work.add(work{e.Start, e.End, int64(at.Correlation)})
	}
	return p, row, event
}

// kernels passes kernels.
func (w *walk) kernels(yield func(*profile.Kernel, *rows.Kernel) bool) (more bool) {
	var out profile.Kernel
	more = true
	w.src.Kernels(func(k *rows.Kernel) bool {
		if w.event(&out.Event, k.PID, k.Start, k.End, k.Correlation, k.Name) {
			out.Device, out.Stream, out.Grid, out.Node = k.Device, k.Stream, k.Grid, int64(k.Node)
			more = yield(&out, k)
		}
		return more
	})
	return more
}

// kernelKey is what many kernels have in common: their launch and place.
type kernelKey struct {
	launch          rows.LaunchID
	device          int32
	context, stream uint32
}

// kernels reads the kernels. Arguments that many of them share are stored once.
func (r *reader) kernels() {
	c := r.category(profile.KernelCategory)
	shared := map[kernelKey]trace.ArgsID{}
	var lastKey kernelKey
	var lastArgs trace.ArgsID
	var k *rows.Kernel
	args := func() {
		key := kernelKey{k.Launch, k.Device, k.Context, k.Stream}
		if key != lastKey || lastArgs == 0 {
			lastKey, lastArgs = key, shared[key]
			if lastArgs == 0 {
				lastArgs = r.put.Put(r.launched(k))
				shared[key] = lastArgs
			}
		}
		r.list = r.list[:0].Int(r.keys.correlation, int64(k.Correlation))
		if k.Node != 0 {
			r.list = r.list.Uint(r.keys.node, k.Node)
		}
		r.list = r.list.Extend(lastArgs)
	}
	r.walk().kernels(func(x *profile.Kernel, row *rows.Kernel) bool {
		k = row
		p, on, event := r.work(c, &x.Event, &k.Place, args)
		if r.meets.Of(k.Name) {
			p.collective(k, on, event)
		}
		return true
	})
}

// collectives reads only the kernels that communicate.
func (r *reader) collectives() {
	r.src.KernelsCalled(r.meets.Of, func(k *rows.Kernel) bool {
		p := r.piece(k.PID)
		p.saw(k.Start, k.End)
		p.collective(k, r.stream(p, &k.Place), profile.NoEvent)
		return true
	})
}

// launched returns the arguments about a kernel's launch and place.
func (r *reader) launched(k *rows.Kernel) trace.ArgList {
	r.list = r.list[:0]
	r.place(&k.Place)
	if launches := r.src.Launches(); k.Launch != 0 && int(k.Launch) < len(launches) {
		l := &launches[k.Launch]
		r.list = r.list.Ints(r.keys.grid, int64(l.Grid[0]), int64(l.Grid[1]), int64(l.Grid[2]))
		r.list = r.list.Ints(r.keys.block, int64(l.Block[0]), int64(l.Block[1]), int64(l.Block[2]))
		if r.filter.Args == profile.ArgsAll {
			r.list = r.list.Int(r.keys.registers, int64(l.Registers)).Int(r.keys.shared, int64(l.StaticShared)+int64(l.DynamicShared))
		}
	}
	return r.list
}

// collective records a kernel that communicates; the calls may add more information later.
func (p *piece) collective(k *rows.Kernel, row, event int32) {
	p.collectives.Add(&profile.Collective{Event: event, Row: row, Time: k.Start, Dur: int64(k.End - k.Start), Name: k.Name,
		OnGPU: true, Seq: -1, In: -1, Out: -1, GroupSize: -1, Correlation: int64(k.Correlation)})
	p.nodes.add(k.Node)
}

// graphRuns passes the runs of graphs that were traced as a whole, without times of their kernels. It returns
// the number of runs without usable times.
func (w *walk) graphRuns(yield func(*profile.Kernel, *rows.GraphRun) bool) (untimed int) {
	names := map[uint32]trace.Sym{}
	out := profile.Kernel{Graph: true}
	w.src.GraphRuns(func(g *rows.GraphRun) bool {
		name := order.Memo(names, g.Graph, func() trace.Sym { return w.src.Options.Syms.Intern("CUDA graph " + numberText(g.Graph)) })
		wanted := w.event(&out.Event, g.PID, g.Start, g.End, g.Correlation, name)
		if !g.Timed || w.lenient && g.End < g.Start {
			untimed++
			return true
		}
		out.Device, out.Stream = g.Device, g.Stream
		return !wanted || yield(&out, g)
	})
	return untimed
}

func (r *reader) graphRuns() {
	c := r.category(profile.KernelCategory)
	untimed := r.walk().graphRuns(func(k *profile.Kernel, g *rows.GraphRun) bool {
		r.work(c, &k.Event, &g.Place, func() {
			r.place(&g.Place)
			r.list = r.list.Int(r.keys.exec, int64(g.Exec))
		})
		return true
	})
	if untimed > 0 {
		r.src.Diag(trace.NsysGraphUntimed, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 0, untimed)
	}
}

// copies passes copies between memories.
func (w *walk) copies(yield func(*profile.Copy, *rows.Memcpy) bool) (more bool) {
	var names [math.MaxUint8 + 1]trace.Sym // by direction
	more = true
	var out profile.Copy
	w.src.Memcpys(func(m *rows.Memcpy) bool {
		if names[m.Direction] == 0 {
			name, _ := profile.CopyOperation(m.Direction.String())
			names[m.Direction] = w.src.Options.Syms.Intern(name)
		}
		if w.event(&out.Event, m.PID, m.Start, m.End, m.Correlation, names[m.Direction]) {
			out.Device, out.Stream, out.Bytes, out.Kind = m.Device, m.Stream, int64(m.Bytes), m.Kind
			more = yield(&out, m)
		}
		return more
	})
	return more
}

// fills passes memory fills.
func (w *walk) fills(yield func(*profile.Copy, *rows.Memset) bool) {
	name := w.src.Options.Syms.Intern(profile.MemsetName)
	var out profile.Copy
	w.src.Memsets(func(m *rows.Memset) bool {
		if !w.event(&out.Event, m.PID, m.Start, m.End, m.Correlation, name) {
			return true
		}
		out.Device, out.Stream, out.Bytes, out.Kind = m.Device, m.Stream, int64(m.Bytes), profile.CopyKind{From: profile.NoMemory, To: m.Kind}
		return yield(&out, m)
	})
}

// copies reads copies and fills. They have the names of PyTorch's profiler, which has none for migrations of
// unified memory.
func (r *reader) copies() {
	c := r.category("gpu_memcpy")
	type kind struct {
		direction rows.Direction
		kind      profile.CopyKind
	}
	names := map[kind]trace.Sym{}
	w := r.walk()
	w.copies(func(x *profile.Copy, m *rows.Memcpy) bool {
		k := kind{m.Direction, m.Kind}
		if names[k] == 0 {
			text := "Memcpy " + m.Direction.String()
			if m.Kind != (profile.CopyKind{}) {
				text += " (" + m.Kind.String() + ")"
			}
			names[k] = r.syms.Intern(text)
		}
		x.Name = names[k]
		r.copy(c, x, &m.Place)
		return true
	})
	c = r.category("gpu_memset")
	w.fills(func(x *profile.Copy, m *rows.Memset) bool {
		x.Name = r.syms.Intern("Memset (" + m.Kind.String() + ")")
		r.copy(c, x, &m.Place)
		return true
	})
}

func (r *reader) copy(c category, x *profile.Copy, at *rows.Place) {
	r.work(c, &x.Event, at, func() {
		r.list = r.list.Uint(r.keys.bytes, uint64(x.Bytes))
		r.place(at)
	})
}

// syncNames are the names of waits, as in PyTorch's profiler.
var syncNames = [...]string{"Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"}

// syncs reads waits. Several threads may wait at once, and streams run meanwhile, so waits have a row of their
// own.
func (r *reader) syncs() {
	c := r.category("cuda_sync")
	var syncName [len(syncNames)]trace.Sym
	for i, name := range syncNames {
		syncName[i] = r.syms.Intern(name)
	}
	walk := r.walk()
	var e profile.Event
	for w := range r.src.Syncs {
		walk.event(&e, w.PID, w.Start, w.End, 0, syncName[int(w.Kind)%len(syncNames)])
		p := r.saw(&e)
		if !r.keeps(c, e.Name, e.Start, e.End) {
			continue
		}
		row := p.row(rowKey{layerWaits, uint32(w.Device), 0}, func() profile.Row {
			return profile.Row{Kind: profile.RowStream, PID: int64(w.Device), PIDText: numberText(w.Device), TID: 1 << 32, TIDText: "waits",
				Name: "waits", Folder: r.gpuFolder(p.pid, w.Device)}
		})
		r.list = r.list[:0].Int(r.keys.correlation, int64(w.Correlation))
		if w.HasStream {
			r.list = r.list.Int(r.keys.stream, int64(w.Stream))
		}
		if w.Event != 0 && w.Event != 1<<32-1 {
			r.list = r.list.Int(r.keys.event, int64(w.Event))
		}
		r.add(p, row, c, &e)
	}
}
