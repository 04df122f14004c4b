package nsysexport

import (
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// threadRow returns a row of a thread, with a name and a place in the order of its rows.
func (r *reader) threadRow(p *piece, tid int32, name string, order int64) profile.Row {
	return profile.Row{Kind: profile.RowThread, PID: int64(p.pid), PIDText: numberText(p.pid), TID: int64(tid), TIDText: numberText(tid) + " " + name,
		Process: r.known().processName(p.pid), Name: name, Sort: order, Folder: r.threadName(p.pid, tid)}
}

// The order of a thread's rows, outermost first.
const (
	orderNVTX = iota + 1
	orderCUDA
	orderLibrary
	orderOS
	orderRunning
	orderSamples
)

// calls passes the calls into the CUDA runtime and driver.
func (w *walk) calls(yield func(*profile.Call, *rows.Call) bool) {
	names := trace.Renamed(w.src.Options.Syms, rows.APIName)
	var out profile.Call
	w.src.API(func(c *rows.Call) bool {
		if !w.event(&out.Event, c.PID, c.Start, c.End, c.Correlation, names.Of(c.Name)) {
			return true
		}
		out.TID, out.Result = int64(c.TID), c.Return
		return yield(&out, c)
	})
}

// api reads the calls of threads into CUDA.
func (r *reader) api() {
	names := trace.Renamed(r.syms, profile.CallName)
	runtime, driver := r.category("cuda_runtime"), r.category("cuda_driver")
	// If no events are kept, launches only serve to find the kernels that NCCL launched.
	links := !r.filter.IndexOnly || r.src.HasNCCL()
	r.walk().calls(func(x *profile.Call, call *rows.Call) bool {
		c := runtime
		if call.Class == rows.ClassDriver {
			c = driver
		}
		p := r.saw(&x.Event)
		key := rowKey{layerCalls, uint32(call.TID), 0}
		row := p.lastRow
		if p.lastKey != key {
			row = p.row(key, func() profile.Row { return r.threadRow(p, call.TID, "CUDA API", orderCUDA) })
		}
		if x.Name = names.Of(call.Name); r.keeps(c, x.Name, x.Start, x.End) {
			if r.put != nil {
				r.list = r.list[:0]
				if call.Correlation != 0 {
					r.list = r.list.Int(r.keys.correlation, int64(call.Correlation))
				}
				r.addResult(call)
			}
			r.add(p, row, c, &x.Event)
		}
		if call.Correlation != 0 && links {
			p.launches.add(profile.Launch{Time: x.Start, Correlation: int64(call.Correlation), Row: row})
		}
		return true
	})
}

// systemCalls passes the calls into the operating system.
func (w *walk) systemCalls(yield func(*profile.Frame, *rows.Call) bool) {
	out := profile.Frame{Kind: profile.SystemFrame}
	w.src.OS(func(c *rows.Call) bool {
		if !w.event(&out.Event, c.PID, c.Start, c.End, 0, c.Name) {
			return true
		}
		out.TID = int64(c.TID)
		return yield(&out, c)
	})
}

func (r *reader) osCalls() {
	c := r.category(profile.SystemCategory)
	r.walk().systemCalls(func(f *profile.Frame, call *rows.Call) bool {
		r.call(&f.Event, call, c, layerOS, orderOS)
		return true
	})
}

// libraryCats are the categories of calls into other libraries.
var libraryCats = map[rows.Class]string{rows.ClassCUDNN: "cudnn", rows.ClassCUBLAS: "cublas", rows.ClassMPI: "mpi", rows.ClassOverhead: "overhead"}

// libraries reads the calls into other libraries, and the profiler's own overhead.
func (r *reader) libraries() {
	names := trace.Renamed(r.syms, profile.CallName)
	w := r.walk()
	var e profile.Event
	for call := range r.src.Libraries {
		w.event(&e, call.PID, call.Start, call.End, 0, names.Of(call.Name))
		r.call(&e, call, r.category(libraryCats[call.Class]), layerLibrary+layer(call.Class)<<4, orderLibrary)
	}
}

// call adds a call that launches nothing.
func (r *reader) call(e *profile.Event, call *rows.Call, c category, of layer, order int64) {
	p := r.saw(e)
	if !r.keeps(c, e.Name, e.Start, e.End) {
		return
	}
	row := p.row(rowKey{of, uint32(call.TID), 0}, func() profile.Row { return r.threadRow(p, call.TID, call.Class.String(), order) })
	r.list = r.list[:0]
	r.addResult(call)
	r.add(p, row, c, e)
}

// addResult adds the result of a call to the arguments, unless it is success.
func (r *reader) addResult(call *rows.Call) {
	if call.Return != 0 && call.Return != profile.UnknownResult {
		r.list = r.list.Int(r.keys.result, int64(call.Return))
	}
}

// runs passes the times during which threads had cores.
func (w *walk) runs(yield func(*profile.Run) bool) {
	var out profile.Run
	w.src.Runs(func(x *rows.Run) bool {
		if !w.event(&out.Event, x.PID, x.Start, x.End, 0, 0) {
			return true
		}
		out.TID, out.CPU = int64(x.TID), x.CPU
		return yield(&out)
	})
}

// scheds reads the times during which threads ran.
func (r *reader) scheds() {
	c, running := r.category("sched"), r.syms.Intern("running")
	r.walk().runs(func(x *profile.Run) bool {
		p := r.saw(&x.Event)
		if x.Name = running; !r.keeps(c, running, x.Start, x.End) {
			return true
		}
		row := p.row(rowKey{layerRunning, uint32(x.TID), 0}, func() profile.Row { return r.threadRow(p, int32(x.TID), "running", orderRunning) })
		r.list = r.list[:0].Int(r.keys.cpu, int64(x.CPU))
		r.add(p, row, c, &x.Event)
		return true
	})
}
