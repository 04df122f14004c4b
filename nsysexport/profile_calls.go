package nsysexport

import (
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// threadFolder is where rows of a thread are.
func (r *reader) threadRow(p *piece, tid int32, name string, order int64) profile.Row {
	return profile.Row{Kind: profile.RowThread, PID: int64(p.pid), PIDText: numberText(p.pid), TID: int64(tid), TIDText: numberText(tid) + " " + name,
		Process: r.known().processName(p.pid), Name: name, Sort: order, Folder: r.threadName(p.pid, tid)}
}

// Rows of a thread, from the outermost on.
const (
	orderNVTX = iota + 1
	orderCUDA
	orderLibrary
	orderOS
	orderRunning
	orderSamples
)

// apiNames cuts the version off the names of calls.
type apiNames struct {
	syms *trace.Symbols
	bare []trace.Sym // by symbol; 0 is not looked at yet
}

func (n *apiNames) of(s trace.Sym) trace.Sym {
	if int(s) >= len(n.bare) {
		n.bare = append(n.bare, make([]trace.Sym, max(int(s)+1, n.syms.Len())-len(n.bare))...)
	}
	if n.bare[s] == 0 {
		n.bare[s] = n.syms.Intern(profile.CallName(n.syms.Name(s)))
	}
	return n.bare[s]
}

// api reads the calls of threads into CUDA.
func (r *reader) api() {
	names := apiNames{syms: r.syms}
	runtime, driver := r.category("cuda_runtime"), r.category("cuda_driver")
	// Without events, launches only tell what NCCL launched.
	links := !r.filter.IndexOnly || r.src.HasNCCL()
	for call := range r.src.API {
		c := runtime
		if call.Class == rows.ClassDriver {
			c = driver
		}
		p := r.piece(call.PID)
		p.saw(call.Start, call.End)
		key := rowKey{layerCalls, uint32(call.TID), 0}
		row := p.lastRow
		if p.lastKey != key {
			row = p.row(key, func() profile.Row { return r.threadRow(p, call.TID, "CUDA API", orderCUDA) })
		}
		name := names.of(call.Name)
		if r.keeps(c, name, call.Start, call.End) {
			if r.put != nil {
				r.list = r.list[:0]
				if call.Correlation != 0 {
					r.list = r.list.Int(r.keys.correlation, int64(call.Correlation))
				}
				r.addResult(call)
			}
			r.add(p, row, c, name, call.Start, call.End, call.Correlation)
		}
		if call.Correlation != 0 && links {
			p.launches.add(profile.Launch{Time: call.Start, Correlation: int64(call.Correlation), Row: row})
		}
	}
}

// osCalls reads the calls into the operating system.
func (r *reader) osCalls() {
	c := r.category("osrt")
	for call := range r.src.OS {
		r.call(call, c, call.Name, layerOS, "OS runtime", orderOS)
	}
}

// libraryCats are the categories of calls into other libraries.
var libraryCats = map[rows.Class]string{rows.ClassCUDNN: "cudnn", rows.ClassCUBLAS: "cublas", rows.ClassMPI: "mpi", rows.ClassOverhead: "overhead"}

// libraries reads the calls into other libraries, and the profiler's own overhead.
func (r *reader) libraries() {
	names := apiNames{syms: r.syms}
	for call := range r.src.Libraries {
		c := r.category(libraryCats[call.Class])
		r.call(call, c, names.of(call.Name), layerLibrary+layer(call.Class)<<4, call.Class.String(), orderLibrary)
	}
}

// call adds a call that launches nothing.
func (r *reader) call(call *rows.Call, c category, name trace.Sym, of layer, row string, order int64) {
	p := r.piece(call.PID)
	p.saw(call.Start, call.End)
	if !r.keeps(c, name, call.Start, call.End) {
		return
	}
	at := p.row(rowKey{of, uint32(call.TID), 0}, func() profile.Row { return r.threadRow(p, call.TID, row, order) })
	r.list = r.list[:0]
	r.addResult(call)
	r.add(p, at, c, name, call.Start, call.End, 0)
}

// addResult adds what a call returned to the arguments, unless that is success.
func (r *reader) addResult(call *rows.Call) {
	if call.Return != 0 && call.Return != profile.UnknownResult {
		r.list = r.list.Int(r.keys.result, int64(call.Return))
	}
}

// scheds reads when threads ran.
func (r *reader) scheds() {
	c, running := r.category("sched"), r.syms.Intern("running")
	for x := range r.src.Runs {
		p := r.piece(x.PID)
		p.saw(x.Start, x.End)
		if !r.keeps(c, running, x.Start, x.End) {
			continue
		}
		row := p.row(rowKey{layerRunning, uint32(x.TID), 0}, func() profile.Row { return r.threadRow(p, x.TID, "running", orderRunning) })
		r.list = r.list[:0].Int(r.keys.cpu, int64(x.CPU))
		r.add(p, row, c, running, x.Start, x.End, 0)
	}
}
