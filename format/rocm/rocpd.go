package rocm

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Rocpd reads the SQLite databases that rocprofv3 (since ROCm 7.0) and rocprof-sys write, one for each process,
// and those that 'rocpd merge' makes of several.
//
// # What is odd
//
//   - Tables have the UUID of the recording after their name ("rocpd_string_00006409_00d1_..."),
//     and some writers omit the "_" or the whole suffix; a merged file has a table for each recording.
//     Plain names are views, which we don't read: they are inner joins, so that one missing
//     thread hides the kernels that it launched.
//   - Ids count anew for each guid. No table has an index, so that each is read once and joined
//     here.
//   - A kernel and the call that launched it have the same stack_id. correlation_id is the number that the
//     application pushed, often 0.
//   - The text of a roctx range is in extdata of its event; its name is that of the function.
//   - The columns environment and command contain credentials. We look up three variables in the first; the
//     second is never read.
//   - uuid of an agent is the number of its model, equal for all GPUs of a host.
//   - Python's multiprocessing workers may leave files that have strings and a node only.
//   - Values of streaming counters (sample_id is not NULL) are left out.
var Rocpd = &format.Format{
	Name:    "rocpd database",
	Doc:     "rocpd databases (*_results.db), as rocprofv3 and rocprof-sys of ROCm 7 write them",
	For:     "'sgtrace merge', 'sgtrace convert rocpd2perfetto', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert: "rocpd2perfetto",
	Noun:    "rocpd database",
	Sniff: func(head []byte) bool {
		return isDatabase(head, "info_node", "info_process", "info_agent", "kernel_dispatch", "memory_copy", "region", "event")
	},
	Index:   index("rocpd", readRocpd),
	OnDisk:  true,
	Beside:  true,
	Machine: true,
}

// rocpdReader reads one database.
type rocpdReader struct {
	*rocpdTables
	in        *format.Input
	opt       *format.Options
	to        *recorder
	strings   lookup[trace.Sym]
	nodes     lookup[rocpdNode]
	processes lookup[*process]
	threads   lookup[int64] // id in the operating system
	agents    lookup[agent]
	streams   lookup[int64] // 0 is the default stream
	symbols   lookup[symbol]
	events    lookup[rocpdEvent]
	meters    lookup[rocpdMeter]
	counted   map[[2]int64][]counted // by scope and event
	tracks    lookup[rocpdTrack]
	pids      map[[2]int64]*process // by scope and pid in the operating system
}

type rocpdNode struct{ machine, host string }
type rocpdEvent struct {
	category trace.Sym
	stack    int64
	text     trace.Sym // of a range or mark of roctx
}
type rocpdMeter struct {
	name, unit trace.Sym
	device     int32
}
type rocpdTrack struct {
	process, thread int64
	name            trace.Sym
}

// readRocpd reads a database.
func readRocpd(in *format.Input, opt *format.Options, to *recorder) error {
	db, err := openDatabase(in.Path, in.Name, opt.Diags)
	if err != nil {
		return err
	}
	r := &rocpdReader{rocpdTables: newRocpdTables(db), in: in, opt: opt, to: to, counted: map[[2]int64][]counted{}, pids: map[[2]int64]*process{}}
	r.events.append, r.strings.append = memory.Append[rocpdEvent], memory.Append[trace.Sym]
	r.metadata()
	r.names()
	r.agentsAndThreads()
	r.kernelNames()
	r.readEvents()
	r.counters()
	r.dispatches()
	r.copies()
	r.allocations()
	r.regions()
	r.samples()
	switch {
	case to.rows > 0:
	case len(r.pids) == 0:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has names and no events", "its process ended before it wrote them, as workers of Python's multiprocessing do"))
	default:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has no events", "nothing was traced, or the process was killed before it wrote them"))
	}
	return db.Close()
}

// metadata reports anything that this reader does not know.
func (r *rocpdReader) metadata() {
	version := ""
	r.scan("metadata", []string{"tag", "value"}, func(_ int32, s *sqlite.Stmt) {
		switch tag, value := s.ColumnText(1), s.ColumnText(2); {
		case tag == "schema_version":
			version = value
		case tag == "compression" && value != "" && value != "none":
			r.opt.Diags.Add(trace.RocmVersion.Of(r.in.Name, version, "texts that are compressed with "+value))
		}
	})
	if major, _, _ := strings.Cut(version, "."); major != "" && major != "3" {
		r.opt.Diags.Add(trace.RocmVersion.Of(r.in.Name, version, "other tables"))
	}
}

// names reads strings, nodes, and processes.
func (r *rocpdReader) names() {
	r.scan("string", []string{"id", "string"}, func(scope int32, s *sqlite.Stmt) {
		r.strings.set(scope, s.ColumnInt64(1), r.opt.Syms.Intern(s.ColumnText(2)))
	})
	r.scan("info_node", []string{"id", "machine_id", "hostname"}, func(scope int32, s *sqlite.Stmt) {
		r.nodes.set(scope, s.ColumnInt64(1), rocpdNode{s.ColumnText(2), s.ColumnText(3)})
	})
	r.scan("info_process", []string{"id", "nid", "pid", "environment"}, func(scope int32, s *sqlite.Stmt) {
		on, _ := r.nodes.get(scope, s.ColumnInt64(2))
		p := r.process(scope, s.ColumnInt64(3), on)
		if rank, size := rankIn(s.ColumnText(4)); rank >= 0 {
			p.ranked(rank, size)
		}
		r.processes.set(scope, s.ColumnInt64(1), p)
	})
}

// process returns the process with a pid.
func (r *rocpdReader) process(scope int32, pid int64, on rocpdNode) *process {
	key := [2]int64{int64(scope), pid}
	p := r.pids[key]
	if p == nil {
		p = r.to.newProcess(pid, on.host)
		p.boot(on.machine)
		r.pids[key] = p
	}
	return p
}

// processOf returns the process of a row. Its number refers to info_process; if that is missing, the row stays in a process
// with its number.
func (r *rocpdReader) processOf(scope int32, pid int64) *process {
	if p, ok := r.processes.get(scope, pid); ok {
		return p
	}
	return r.process(scope, pid, rocpdNode{})
}

// rankIn returns the rank in an environment, a JSON object of texts; -1 if there is none. Everything else in it is secret.
func rankIn(environment string) (rank, size int32) {
	var all struct {
		Rank json.RawMessage `json:"RANK"`
		Size json.RawMessage `json:"WORLD_SIZE"`
	}
	if json.Unmarshal([]byte(environment), &all) != nil {
		return -1, -1
	}
	number := func(raw json.RawMessage) int32 {
		n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 32)
		if err != nil || n < 0 {
			return -1
		}
		return int32(n)
	}
	return number(all.Rank), number(all.Size)
}

// agentsAndThreads reads devices, threads, and streams.
func (r *rocpdReader) agentsAndThreads() {
	r.scan("info_thread", []string{"id", "tid"}, func(scope int32, s *sqlite.Stmt) {
		r.threads.set(scope, s.ColumnInt64(1), s.ColumnInt64(2))
	})
	seen := map[int32]int32{} // GPUs by scope, if the file does not number them
	r.scan("info_agent", []string{"id", "pid", "type", "type_index", "product_name", "model_name", "name", "extdata"}, func(scope int32, s *sqlite.Stmt) {
		a := agent{gpu: s.ColumnText(3) == "GPU", number: int32(s.ColumnInt64(4))}
		if a.gpu && s.ColumnIsNull(4) {
			a.number = seen[scope]
		}
		if a.gpu {
			seen[scope]++
			name := cmp.Or(s.ColumnText(5), s.ColumnText(6), s.ColumnText(7))
			r.processOf(scope, s.ColumnInt64(2)).Device(a.number, name, uuidIn(s.ColumnText(8)))
		}
		r.agents.set(scope, s.ColumnInt64(1), a)
	})
	r.scan("info_stream", []string{"id"}, func(scope int32, s *sqlite.Stmt) { r.streams.set(scope, s.ColumnInt64(1), s.ColumnInt64(1)) })
}

// uuidIn returns the UUID of a device from the JSON of an agent; "" if there is none.
func uuidIn(extdata string) string {
	var all struct {
		UUID struct {
			Bytes []int
		} `json:"uuid"`
	}
	if json.Unmarshal([]byte(extdata), &all) != nil || len(all.UUID.Bytes) == 0 {
		return ""
	}
	const digits = "0123456789abcdef"
	text := []byte("GPU-")
	for _, b := range all.UUID.Bytes {
		text = append(text, digits[b>>4&15], digits[b&15])
	}
	return string(text)
}

// kernelNames reads the names of kernels.
func (r *rocpdReader) kernelNames() {
	r.scan("info_kernel_symbol", []string{"id", "display_name", "kernel_name", "arch_vgpr_count"}, func(scope int32, s *sqlite.Stmt) {
		name := cmp.Or(s.ColumnText(2), strings.TrimSuffix(s.ColumnText(3), ".kd"))
		r.symbols.set(scope, s.ColumnInt64(1), symbol{r.opt.Syms.Intern(name), s.ColumnInt64(4)})
	})
}

// readEvents reads the common data of rows of all kinds.
func (r *rocpdReader) readEvents() {
	r.scan("event", []string{"id", "category_id", "stack_id", "extdata"}, func(scope int32, s *sqlite.Stmt) {
		e := rocpdEvent{stack: s.ColumnInt64(3)}
		e.category, _ = r.strings.get(scope, s.ColumnInt64(2))
		if isMarker(r.opt.Syms.Name(e.category)) {
			var data struct{ Message string }
			if json.Unmarshal([]byte(s.ColumnText(4)), &data) == nil && data.Message != "" {
				e.text = r.opt.Syms.Intern(data.Message)
			}
		}
		r.events.set(scope, s.ColumnInt64(1), e)
	})
}

func isMarker(category string) bool { return strings.Contains(strings.ToUpper(category), "MARKER") }

// counters reads the names and values of hardware counters, except for streaming ones.
func (r *rocpdReader) counters() {
	r.scan("info_pmc", []string{"id", "agent_id", "name", "symbol", "units"}, func(scope int32, s *sqlite.Stmt) {
		a, _ := r.agents.get(scope, s.ColumnInt64(2))
		name := cmp.Or(s.ColumnText(3), s.ColumnText(4))
		r.meters.set(scope, s.ColumnInt64(1), rocpdMeter{r.opt.Syms.Intern(name), r.opt.Syms.Intern(s.ColumnText(5)), a.number})
	})
	r.scan("pmc_event", []string{"event_id", "pmc_id", "value", "sample_id"}, func(scope int32, s *sqlite.Stmt) {
		m, ok := r.meters.get(scope, s.ColumnInt64(2))
		if !ok || !s.ColumnIsNull(4) {
			return
		}
		key := [2]int64{int64(scope), s.ColumnInt64(1)}
		r.counted[key] = addTo(r.counted[key], counted{Name: m.name, Unit: m.unit, Device: m.device, Value: s.ColumnFloat(3)})
	})
}

// name returns the symbol of a string, and counts missing strings.
func (r *rocpdReader) name(sym trace.Sym, ok bool) trace.Sym {
	switch {
	case !ok:
		return r.to.name("")
	case sym == 0:
		return r.opt.Syms.Intern(profile.NoName)
	}
	return sym
}

// category returns the category of an event, in capitals, without the prefix of rocprof-sys.
func (r *rocpdReader) category(e rocpdEvent) string {
	return strings.TrimPrefix(strings.ToUpper(r.opt.Syms.Name(e.category)), "ROCM_")
}

// callKinds are prefixes of categories of calls.
var callKinds = []struct{ begins, kind string }{
	{"HIP", runtimeCall}, {"RCCL", runtimeCall}, {"HSA", driverCall}, {"ROCDECODE", runtimeCall}, {"ROCJPEG", runtimeCall},
}

// regions reads calls and annotations.
func (r *rocpdReader) regions() {
	r.scan("region", []string{"pid", "tid", "start", "end", "name_id", "event_id"}, func(scope int32, s *sqlite.Stmt) {
		r.to.rows++
		p, tid := r.processOf(scope, s.ColumnInt64(1)), r.thread(scope, s.ColumnInt64(2))
		from, to := trace.Time(s.ColumnInt64(3)), trace.Time(s.ColumnInt64(4))
		name := r.name(r.strings.get(scope, s.ColumnInt64(5)))
		e, _ := r.events.get(scope, s.ColumnInt64(6))
		category := r.category(e)
		for _, k := range callKinds {
			if strings.HasPrefix(category, k.begins) {
				p.call(tid, k.kind, name, from, to, e.stack)
				return
			}
		}
		switch {
		case strings.HasPrefix(category, "KFD"):
			p.other(tid, "kfd", name, from, to)
		case e.text != 0:
			p.Range(tid, e.text, from, to)
		default:
			p.Range(tid, name, from, to)
		}
	})
}

func (r *rocpdReader) thread(scope int32, id int64) int64 {
	if tid, ok := r.threads.get(scope, id); ok {
		return tid
	}
	return id
}

// samples reads marks, and counters over time.
func (r *rocpdReader) samples() {
	r.scan("track", []string{"id", "pid", "tid", "name_id"}, func(scope int32, s *sqlite.Stmt) {
		name, _ := r.strings.get(scope, s.ColumnInt64(4))
		r.tracks.set(scope, s.ColumnInt64(1), rocpdTrack{s.ColumnInt64(2), s.ColumnInt64(3), name})
	})
	r.scan("sample", []string{"track_id", "timestamp", "event_id"}, func(scope int32, s *sqlite.Stmt) {
		r.to.rows++
		on, ok := r.tracks.get(scope, s.ColumnInt64(1))
		if !ok {
			return
		}
		p, at := r.processOf(scope, on.process), trace.Time(s.ColumnInt64(2))
		e, _ := r.events.get(scope, s.ColumnInt64(3))
		values := r.counted[[2]int64{int64(scope), s.ColumnInt64(3)}]
		for _, v := range values {
			p.counter(v.Device, v.Name, v.Unit, at, v.Value, profile.DeviceCounter)
		}
		switch {
		case len(values) > 0:
		case e.text != 0:
			p.mark(r.thread(scope, on.thread), e.text, at)
		default:
			p.mark(r.thread(scope, on.thread), r.name(on.name, true), at)
		}
	})
}
