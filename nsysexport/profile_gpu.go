package nsysexport

import (
	"fmt"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// gpuFolder is where rows of a device are.
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

// place adds the arguments that say where something ran.
func (r *reader) place(at *rows.Place) {
	r.list = r.list.Int(r.keys.device, int64(at.Device)).Int(r.keys.context, int64(at.Context)).Int(r.keys.stream, int64(at.Stream))
}

// worked notes what a device did, if the filter may leave it out of the events.
func (r *reader) worked(p *piece, at *rows.Place, from, to trace.Time) {
	if at.Correlation != 0 && r.sparse && !r.filter.IndexOnly {
		p.work.add(work{from, to, int64(at.Correlation)})
	}
}

// kernelKey is what many kernels have in common: how they were launched, and where.
type kernelKey struct {
	launch          rows.LaunchID
	device          int32
	context, stream uint32
}

// kernels reads the kernels. The arguments that many of them share are kept once.
func (r *reader) kernels() {
	c := r.category(profile.KernelCategory)
	shared := map[kernelKey]trace.ArgsID{}
	var lastKey kernelKey
	var lastArgs trace.ArgsID
	for k := range r.src.Kernels {
		p := r.piece(k.PID)
		p.saw(k.Start, k.End)
		row, event := r.stream(p, &k.Place), int32(profile.NoEvent)
		r.mark(p, row, k.Name, k.Start, k.End)
		if r.keeps(c, k.Name, k.Start, k.End) {
			if r.put != nil {
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
			event = r.add(p, row, c, k.Name, k.Start, k.End, k.Correlation)
		}
		r.worked(p, &k.Place, k.Start, k.End)
		if r.communicates(k.Name) {
			p.collective(k, row, event)
		}
	}
}

// collectives reads the kernels that communicate, and no others.
func (r *reader) collectives() {
	r.src.KernelsCalled(r.communicates, func(k *rows.Kernel) bool {
		p := r.piece(k.PID)
		p.saw(k.Start, k.End)
		p.collective(k, r.stream(p, &k.Place), profile.NoEvent)
		return true
	})
}

// communicates reports whether kernels of a name meet those of other ranks.
func (r *reader) communicates(name trace.Sym) bool {
	if int(name) >= len(r.meets) {
		r.meets = append(r.meets, make([]int8, max(int(name)+1, r.syms.Len())-len(r.meets))...)
	}
	if r.meets[name] == 0 {
		r.meets[name] = -1
		if profile.MeetsOthers(r.syms.Name(name)) {
			r.meets[name] = 1
		}
	}
	return r.meets[name] > 0
}

// launched returns the arguments that say how a kernel was launched, and where.
func (r *reader) launched(k *rows.Kernel) trace.ArgList {
	r.list = r.list[:0]
	r.place(&k.Place)
	if launches := r.src.Launches(); k.Launch != 0 && int(k.Launch) < len(launches) {
		l := &launches[k.Launch]
		r.dims(r.keys.grid, l.Grid)
		r.dims(r.keys.block, l.Block)
		if r.filter.Args == profile.ArgsAll {
			r.list = r.list.Int(r.keys.registers, int64(l.Registers)).Int(r.keys.shared, int64(l.StaticShared)+int64(l.DynamicShared))
		}
	}
	return r.list
}

func (r *reader) dims(key trace.Sym, v [3]uint32) {
	var elems trace.ArgList
	for _, n := range v {
		elems = elems.Int(0, int64(n))
	}
	r.list = r.list.Array(key, elems)
}

// collective notes a kernel that communicates, of which more may become known when
// the calls have been read.
func (p *piece) collective(k *rows.Kernel, row, event int32) {
	p.collectives.Add(&profile.Collective{Event: event, Row: row, Time: k.Start, Dur: int64(k.End - k.Start), Name: k.Name,
		OnGPU: true, Seq: -1, In: -1, Out: -1, GroupSize: -1, Correlation: int64(k.Correlation)})
	p.nodes.add(k.Node)
}

// graphRuns reads the runs of graphs that were traced as a whole: this is all the
// time there is of their kernels. A run of which the GPU told no times is counted.
func (r *reader) graphRuns() {
	c := r.category(profile.KernelCategory)
	untimed := 0
	names := map[uint32]trace.Sym{}
	for g := range r.src.GraphRuns {
		if !g.Timed || g.End < g.Start {
			untimed++
			continue
		}
		p := r.piece(g.PID)
		p.saw(g.Start, g.End)
		name, ok := names[g.Graph]
		if !ok {
			name = r.syms.Intern(graphName(g.Graph))
			names[g.Graph] = name
		}
		row := r.stream(p, &g.Place)
		r.mark(p, row, name, g.Start, g.End)
		if r.keeps(c, name, g.Start, g.End) {
			r.list = r.list[:0].Int(r.keys.correlation, int64(g.Correlation))
			r.place(&g.Place)
			r.list = r.list.Int(r.keys.exec, int64(g.Exec))
			r.add(p, row, c, name, g.Start, g.End, g.Correlation)
		}
		r.worked(p, &g.Place, g.Start, g.End)
	}
	if untimed > 0 {
		r.src.Diag(trace.NsysGraphUntimed, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 0, untimed)
	}
}

// copyWords are the directions of copies in the words of PyTorch's profiler, which has none for
// migrations of unified memory.
var copyWords = [...]string{"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
	"Unified HtoD", "Unified DtoH", "Unified DtoD"}

// copies reads copies between memories and what fills memory. They are called as
// PyTorch's profiler calls them.
func (r *reader) copies() {
	c := r.category("gpu_memcpy")
	type direction struct {
		kind     rows.CopyKind
		src, dst rows.MemoryKind
	}
	names := map[direction]trace.Sym{}
	for m := range r.src.Memcpys {
		d := direction{m.Kind, m.Src, m.Dst}
		name, ok := names[d]
		if !ok {
			word := copyWords[0]
			if int(d.kind) < len(copyWords) {
				word = copyWords[d.kind]
			}
			text := fmt.Sprintf("Memcpy %s (%s -> %s)", word, d.src, d.dst)
			if d.src == rows.UnknownMemory && d.dst == rows.UnknownMemory {
				text = "Memcpy " + word
			}
			name = r.syms.Intern(text)
			names[d] = name
		}
		r.copy(c, &m.Place, name, m.Start, m.End, m.Bytes)
	}
	c = r.category("gpu_memset")
	for m := range r.src.Memsets {
		r.copy(c, &m.Place, r.syms.Intern("Memset ("+m.Kind.String()+")"), m.Start, m.End, m.Bytes)
	}
}

func (r *reader) copy(c category, at *rows.Place, name trace.Sym, from, to trace.Time, bytes uint64) {
	p := r.piece(at.PID)
	p.saw(from, to)
	row := r.stream(p, at)
	r.mark(p, row, name, from, to)
	if r.keeps(c, name, from, to) {
		r.list = r.list[:0].Int(r.keys.correlation, int64(at.Correlation)).Uint(r.keys.bytes, bytes)
		r.place(at)
		r.add(p, row, c, name, from, to, at.Correlation)
	}
	r.worked(p, at, from, to)
}

// syncNames are what waits are called, as by PyTorch's profiler.
var syncNames = [...]string{"Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"}

// syncs reads what was waited for. Several threads may wait at once, and streams
// run meanwhile, so that waits have a row of their own.
func (r *reader) syncs() {
	c := r.category("cuda_sync")
	var syncName [len(syncNames)]trace.Sym
	for i, name := range syncNames {
		syncName[i] = r.syms.Intern(name)
	}
	for w := range r.src.Syncs {
		p := r.piece(w.PID)
		p.saw(w.Start, w.End)
		name := syncName[int(w.Kind)%len(syncNames)]
		if !r.keeps(c, name, w.Start, w.End) {
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
		r.add(p, row, c, name, w.Start, w.End, 0)
	}
}
