package rocm

import (
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// RPD reads the SQLite files of rocmProfileData (trace.rpd), which SGLang's activity RPD,
// runTracer.sh, and loadTracer.sh record. All ranks of a host are in one file.
//
// # What is odd
//
//   - Kernels in a graph have the type Task, all others KernelExecution. A copy has no
//     description, only its type.
//   - roctx ranges are stored as marks: calls named UserMarker without duration, whose text is among
//     their arguments.
//   - The tables have the same names as those of rocpd, which is another format.
//   - One text may have several ids.
//   - In version 3, the argument of a call is in a table of its own, rocpd_ustring.
//   - AMD's documentation says that times are in microseconds; they are nanoseconds.
//   - With the source rocprofiler-sdk (2026), times of operations count from the boot, those of calls exclude the
//     time that the host slept, and all copies are on GPU 0.
//   - Under loadTracer.sh, the file may have been unlinked; the one in its place is then empty.
var RPD = &format.Format{
	Name:    "RPD trace",
	Doc:     "RPD traces (trace.rpd), as rocmProfileData and SGLang's activity RPD write them",
	For:     "'sgtrace merge', 'sgtrace convert rpd2perfetto', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert: "rpd2perfetto",
	Noun:    "RPD trace",
	Sniff: func(head []byte) bool {
		return isDatabase(head, "api", "op", "api_ops", "kernelapi", "copyapi")
	},
	Index:   index("RPD", readRPD),
	OnDisk:  true,
	Beside:  true,
	Machine: true,
}

// rpdReader reads one file.
type rpdReader struct {
	db    *database
	opt   *format.Options
	to    *recorder
	texts map[int64]trace.Sym // of rocpd_string
	procs map[int64]*process
	// By the id of a call: its process.
	callers map[int64]*process
	// By the id of an operation: the call that requested it.
	callOf   map[int64]int64
	sizes    map[int64]int64     // bytes of copies, by call
	launches map[int64]rpdLaunch // by call
}

// An rpdLaunch is the launch of a kernel.
type rpdLaunch struct {
	grid, group [3]int64
	shared      int64
}

func readRPD(in *format.Input, opt *format.Options, to *recorder) error {
	db, err := openDatabase(in.Path, in.Name, opt.Diags)
	if err != nil {
		return err
	}
	r := &rpdReader{db: db, opt: opt, to: to, texts: map[int64]trace.Sym{}, procs: map[int64]*process{}, callers: map[int64]*process{},
		callOf: map[int64]int64{}, sizes: map[int64]int64{}, launches: map[int64]rpdLaunch{}}
	db.Scan("rocpd_string", []string{"id", "string"}, func(s *sqlite.Stmt) { r.texts[s.ColumnInt64(1)] = opt.Syms.Intern(s.ColumnText(2)) })
	r.links()
	calls, ops := r.calls(), r.ops()
	to.rows = calls + ops
	if r.monitors(); len(r.procs) == 0 {
		r.process(0)
	}
	switch {
	case to.rows == 0:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has no events", "nothing was traced, or loadTracer.sh unlinked the file that took them"))
	case ops == 0:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has calls and nothing that a GPU did", "the GPU was not traced, or loadTracer.sh unlinked the file that took it"))
	}
	return db.Close()
}

// links reads the connections between calls and operations, and the launches of kernels.
func (r *rpdReader) links() {
	r.db.Scan("rocpd_api_ops", []string{"api_id", "op_id"}, func(s *sqlite.Stmt) { r.callOf[s.ColumnInt64(2)] = s.ColumnInt64(1) })
	r.db.Scan("rocpd_copyapi", []string{"api_ptr_id", "size"}, func(s *sqlite.Stmt) { r.sizes[s.ColumnInt64(1)] = s.ColumnInt64(2) })
	r.db.Scan("rocpd_kernelapi", []string{"api_ptr_id", "gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ", "groupSegmentSize"}, func(s *sqlite.Stmt) {
		l := rpdLaunch{shared: s.ColumnInt64(8)}
		for i := range l.grid {
			l.grid[i], l.group[i] = s.ColumnInt64(2+i), s.ColumnInt64(5+i)
		}
		for i := range l.grid {
			l.grid[i] *= max(l.group[i], 1) // here the grid counts blocks, unlike elsewhere
		}
		r.launches[s.ColumnInt64(1)] = l
	})
}

// process returns the process with a pid.
func (r *rpdReader) process(pid int64) *process {
	return order.Memo(r.procs, pid, func() *process { return r.to.newProcess(pid, "") })
}

func (r *rpdReader) text(id int64) trace.Sym {
	if sym := r.texts[id]; sym != 0 {
		return sym
	}
	return r.to.name("")
}

// rpdMarker is the name of calls that are marks of roctx.
const rpdMarker = "UserMarker"

// calls reads calls, and returns their number.
func (r *rpdReader) calls() (n int) {
	marks := r.opt.Syms.Intern(rpdMarker)
	args := map[int64]trace.Sym{} // in version 3
	if r.db.has("rocpd_ustring") {
		// The arguments of other calls contain addresses, and are never read.
		wanted := map[int64]bool{}
		r.db.Scan("rocpd_api", []string{"apiName_id", "args_id", "domain_id"}, func(s *sqlite.Stmt) {
			if r.isMark(s, marks) {
				wanted[s.ColumnInt64(2)] = true
			}
		})
		r.db.Scan("rocpd_ustring", []string{"id", "string"}, func(s *sqlite.Stmt) {
			if wanted[s.ColumnInt64(1)] {
				args[s.ColumnInt64(1)] = r.opt.Syms.Intern(s.ColumnText(2))
			}
		})
	} else {
		args = r.texts
	}
	r.db.Scan("rocpd_api", []string{"apiName_id", "args_id", "domain_id", "id", "pid", "tid", "start", "end"}, func(s *sqlite.Stmt) {
		n++
		id, p := s.ColumnInt64(4), r.process(s.ColumnInt64(5))
		tid, from, to := s.ColumnInt64(6), trace.Time(s.ColumnInt64(7)), trace.Time(s.ColumnInt64(8))
		r.callers[id] = p
		name := r.text(s.ColumnInt64(1))
		switch isMark := r.isMark(s, marks); {
		case isMark && to > from:
			p.Range(tid, r.textOr(args[s.ColumnInt64(2)], name), from, to)
		case isMark:
			p.mark(tid, r.textOr(args[s.ColumnInt64(2)], name), from)
		case strings.Contains(r.opt.Syms.Name(name), "::"):
			p.other(tid, "rpd", name, from, to) // work of the tracer itself: "OpTable::writeRows"
		default:
			p.call(tid, runtimeCall, name, from, to, id)
		}
	})
	return n
}

// isMark reports whether a row of rocpd_api is a mark or a range of roctx: its columns begin with apiName_id, args_id, and
// domain_id.
func (r *rpdReader) isMark(s *sqlite.Stmt, marks trace.Sym) bool {
	return r.texts[s.ColumnInt64(1)] == marks || !s.ColumnIsNull(3) && strings.Contains(strings.ToLower(r.opt.Syms.Name(r.texts[s.ColumnInt64(3)])), "roctx")
}

func (r *rpdReader) textOr(sym, other trace.Sym) trace.Sym {
	if sym != 0 && r.opt.Syms.Name(sym) != "" {
		return sym
	}
	return other
}

// ops reads the work of devices, and returns the number of operations. Those without a call belong to the only process, if
// there is just one.
func (r *rpdReader) ops() (n int) {
	r.db.Scan("rocpd_op", []string{"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"}, func(s *sqlite.Stmt) {
		n++
		call := r.callOf[s.ColumnInt64(1)]
		p := r.callers[call]
		if p == nil {
			p = r.orphans()
		}
		at := at{Device: s.ColumnInt64(2), Stream: s.ColumnInt64(3), Start: trace.Time(s.ColumnInt64(4)), End: trace.Time(s.ColumnInt64(5)), Correlation: call}
		kind := r.opt.Syms.Name(r.texts[s.ColumnInt64(7)])
		name := r.texts[s.ColumnInt64(6)]
		if kind == "KernelExecution" || kind == "Task" || r.opt.Syms.Name(name) != "" {
			l := r.launches[call]
			p.kernel(&dispatch{at: at, Name: r.textOr(name, r.text(s.ColumnInt64(7))), Grid: l.grid, Group: l.group, Shared: l.shared})
			return
		}
		size, ok := r.sizes[call]
		if !ok {
			size = -1
		}
		p.Copy(&at, kind, size)
	})
	return n
}

// orphans returns the process for operations without a call: the only process, or else the machine.
func (r *rpdReader) orphans() *process {
	if len(r.procs) == 1 {
		for _, p := range r.procs {
			return p
		}
	}
	return r.process(0)
}

// monitors reads the samples of devices: clocks, power, temperature.
func (r *rpdReader) monitors() {
	units := map[string]string{"sclk": "MHz", "mclk": "MHz", "power": "W", "temp": "°C"}
	r.db.Scan("rocpd_monitor", []string{"deviceType", "deviceId", "monitorType", "start", "value"}, func(s *sqlite.Stmt) {
		p := r.orphans()
		value, err := strconv.ParseFloat(s.ColumnText(5), 64)
		if err != nil || s.ColumnText(1) != "gpu" {
			return
		}
		what := s.ColumnText(3)
		p.counter(int32(s.ColumnInt64(2)), r.opt.Syms.Intern(what), r.opt.Syms.Intern(units[what]), trace.Time(s.ColumnInt64(4)), value, profile.DeviceCounter)
	})
}
