package rocpd

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/rocm"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is what rocprofv3 and rocprof-sys write by default since ROCm 7.
var Format = &format.Format{
	Name:    "rocpd database",
	Doc:     "rocpd databases (*_results.db), as rocprofv3 and rocprof-sys of ROCm 7 write them",
	For:     "'sgtrace merge', 'sgtrace convert rocpd2perfetto', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert: "rocpd2perfetto",
	Noun:    "rocpd database",
	Sniff: func(h format.Head) bool {
		return rocm.IsDatabase(h.Bytes, "info_node", "info_process", "info_agent", "kernel_dispatch", "memory_copy", "region", "event")
	},
	Index:   rocm.Index("rocpd", read),
	OnDisk:  true,
	Beside:  true,
	Machine: true,
}

// reader reads one database.
type reader struct {
	*tables
	in        *format.Input
	opt       *format.Options
	to        *rocm.Recorder
	strings   lookup[trace.Sym]
	nodes     lookup[node]
	processes lookup[*rocm.Process]
	threads   lookup[int64] // number of the operating system
	agents    lookup[agent]
	streams   lookup[int64] // 0 is the default stream
	symbols   lookup[symbol]
	events    lookup[event]
	meters    lookup[meter]
	counted   map[[2]int64][]rocm.Counted // by scope and event
	tracks    lookup[track]
	pids      map[[2]int64]*rocm.Process // by scope and pid of the operating system
	machines  map[string]bool
	nameless  int
	rows      int
}

type node struct{ machine, host string }
type agent struct {
	number int32
	gpu    bool
}
type symbol struct {
	name      trace.Sym
	registers int64
}
type event struct {
	category trace.Sym
	stack    int64
	text     trace.Sym // of a range or mark of roctx
}
type meter struct {
	name, unit trace.Sym
	device     int32
}
type track struct {
	process, thread int64
	name            trace.Sym
}

// read reads a database.
func read(in *format.Input, opt *format.Options, to *rocm.Recorder) error {
	db, err := rocm.OpenDatabase(in.Path, in.Name, opt.Diags)
	if err != nil {
		return err
	}
	r := &reader{tables: newTables(db), in: in, opt: opt, to: to, counted: map[[2]int64][]rocm.Counted{}, pids: map[[2]int64]*rocm.Process{}, machines: map[string]bool{}}
	r.events.append, r.strings.append = memory.Append[event], memory.Append[trace.Sym]
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
	case r.rows == 0 && len(r.pids) == 0:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has names and no events", "its process ended before it wrote them, as workers of Python's multiprocessing do"))
	case r.rows == 0:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has no events", "nothing was traced, or the process was killed before it wrote them"))
	default:
		opt.Diags.Add(trace.RocmClock.Of(in.Name))
	}
	if r.nameless > 0 {
		opt.Diags.Add(trace.RocmNames.Of(in.Name, r.nameless))
	}
	return db.Close()
}

// metadata looks for what this reader does not know.
func (r *reader) metadata() {
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
func (r *reader) names() {
	r.scan("string", []string{"id", "string"}, func(scope int32, s *sqlite.Stmt) {
		r.strings.set(scope, s.ColumnInt64(1), r.opt.Syms.Intern(s.ColumnText(2)))
	})
	r.scan("info_node", []string{"id", "machine_id", "hostname"}, func(scope int32, s *sqlite.Stmt) {
		r.nodes.set(scope, s.ColumnInt64(1), node{s.ColumnText(2), s.ColumnText(3)})
	})
	r.scan("info_process", []string{"id", "nid", "pid", "environment"}, func(scope int32, s *sqlite.Stmt) {
		on, _ := r.nodes.get(scope, s.ColumnInt64(2))
		p := r.process(scope, s.ColumnInt64(3), on)
		if rank, size := rankIn(s.ColumnText(4)); rank >= 0 {
			p.Ranked(rank, size)
		}
		r.processes.set(scope, s.ColumnInt64(1), p)
	})
}

// process returns the process with a number of the operating system.
func (r *reader) process(scope int32, pid int64, on node) *rocm.Process {
	key := [2]int64{int64(scope), pid}
	p := r.pids[key]
	if p == nil {
		p = r.to.NewProcess(pid, on.host)
		p.Boot(on.machine)
		r.pids[key] = p
		r.machines[on.machine] = true
	}
	return p
}

// of returns the process that a row is of. Its number leads to info_process; where that is
// missing, the row stays in a process that has its number.
func (r *reader) of(scope int32, pid int64) *rocm.Process {
	if p, ok := r.processes.get(scope, pid); ok {
		return p
	}
	return r.process(scope, pid, node{})
}

// rankIn returns what an environment, a JSON object of texts, says of the rank of its process; -1 is
// nothing. All else in it is a secret.
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
func (r *reader) agentsAndThreads() {
	r.scan("info_thread", []string{"id", "tid"}, func(scope int32, s *sqlite.Stmt) {
		r.threads.set(scope, s.ColumnInt64(1), s.ColumnInt64(2))
	})
	seen := map[int32]int32{} // GPUs by scope, where the file does not number them
	r.scan("info_agent", []string{"id", "pid", "type", "type_index", "product_name", "model_name", "name", "extdata"}, func(scope int32, s *sqlite.Stmt) {
		a := agent{gpu: s.ColumnText(3) == "GPU", number: int32(s.ColumnInt64(4))}
		if a.gpu && s.ColumnIsNull(4) {
			a.number = seen[scope]
		}
		if a.gpu {
			seen[scope]++
			name := s.ColumnText(5)
			for i := 6; name == "" && i <= 7; i++ {
				name = s.ColumnText(i)
			}
			r.of(scope, s.ColumnInt64(2)).Device(a.number, name, uuidIn(s.ColumnText(8)))
		}
		r.agents.set(scope, s.ColumnInt64(1), a)
	})
	r.scan("info_stream", []string{"id"}, func(scope int32, s *sqlite.Stmt) { r.streams.set(scope, s.ColumnInt64(1), s.ColumnInt64(1)) })
}

// uuidIn returns the UUID of a device that the JSON beside an agent has; "" is none.
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

// kernelNames reads what kernels are called.
func (r *reader) kernelNames() {
	r.scan("info_kernel_symbol", []string{"id", "display_name", "kernel_name", "arch_vgpr_count"}, func(scope int32, s *sqlite.Stmt) {
		name := s.ColumnText(2)
		if name == "" {
			name = strings.TrimSuffix(s.ColumnText(3), ".kd")
		}
		r.symbols.set(scope, s.ColumnInt64(1), symbol{r.opt.Syms.Intern(name), s.ColumnInt64(4)})
	})
}

// readEvents reads what rows of all kinds have in common.
func (r *reader) readEvents() {
	r.scan("event", []string{"id", "category_id", "stack_id", "extdata"}, func(scope int32, s *sqlite.Stmt) {
		e := event{stack: s.ColumnInt64(3)}
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

// counters reads what hardware counters are called and counted, except for streaming ones.
func (r *reader) counters() {
	r.scan("info_pmc", []string{"id", "agent_id", "name", "symbol", "units"}, func(scope int32, s *sqlite.Stmt) {
		a, _ := r.agents.get(scope, s.ColumnInt64(2))
		name := s.ColumnText(3)
		if name == "" {
			name = s.ColumnText(4)
		}
		r.meters.set(scope, s.ColumnInt64(1), meter{r.opt.Syms.Intern(name), r.unit(s.ColumnText(5)), a.number})
	})
	r.scan("pmc_event", []string{"event_id", "pmc_id", "value", "sample_id"}, func(scope int32, s *sqlite.Stmt) {
		m, ok := r.meters.get(scope, s.ColumnInt64(2))
		if !ok || !s.ColumnIsNull(4) {
			return
		}
		key := [2]int64{int64(scope), s.ColumnInt64(1)}
		list := r.counted[key]
		i := slices.IndexFunc(list, func(c rocm.Counted) bool { return c.Name == m.name })
		if i < 0 {
			i, list = len(list), append(list, rocm.Counted{Name: m.name, Unit: m.unit, Device: m.device})
		}
		list[i].Value += s.ColumnFloat(3) // of all parts of the device
		r.counted[key] = list
	})
}

func (r *reader) unit(text string) trace.Sym {
	if text == "" {
		return 0
	}
	return r.opt.Syms.Intern(text)
}

// name returns the text of a string, and counts those that are missing.
func (r *reader) name(sym trace.Sym, ok bool) trace.Sym {
	if !ok || sym == 0 {
		if !ok {
			r.nameless++
		}
		return r.opt.Syms.Intern("(no name)")
	}
	return sym
}

// category returns what an event is of, in capitals, without what rocprof-sys puts in front.
func (r *reader) category(e event) string {
	return strings.TrimPrefix(strings.ToUpper(r.opt.Syms.Name(e.category)), "ROCM_")
}

// callKinds are the beginnings of categories of calls.
var callKinds = []struct{ begins, kind string }{
	{"HIP", rocm.RuntimeCall}, {"RCCL", rocm.RuntimeCall}, {"HSA", rocm.DriverCall}, {"ROCDECODE", rocm.RuntimeCall}, {"ROCJPEG", rocm.RuntimeCall},
}

// regions reads calls and annotations.
func (r *reader) regions() {
	r.scan("region", []string{"pid", "tid", "start", "end", "name_id", "event_id"}, func(scope int32, s *sqlite.Stmt) {
		r.rows++
		p, tid := r.of(scope, s.ColumnInt64(1)), r.thread(scope, s.ColumnInt64(2))
		from, to := trace.Time(s.ColumnInt64(3)), trace.Time(s.ColumnInt64(4))
		name := r.name(r.strings.get(scope, s.ColumnInt64(5)))
		e, _ := r.events.get(scope, s.ColumnInt64(6))
		category := r.category(e)
		for _, k := range callKinds {
			if strings.HasPrefix(category, k.begins) {
				p.Call(tid, k.kind, name, from, to, e.stack)
				return
			}
		}
		switch {
		case strings.HasPrefix(category, "KFD"):
			p.Other(tid, "kfd", name, from, to)
		case e.text != 0:
			p.Range(tid, e.text, from, to)
		default:
			p.Range(tid, name, from, to)
		}
	})
}

func (r *reader) thread(scope int32, id int64) int64 {
	if tid, ok := r.threads.get(scope, id); ok {
		return tid
	}
	return id
}

// samples reads marks, and counters over time.
func (r *reader) samples() {
	r.scan("track", []string{"id", "pid", "tid", "name_id"}, func(scope int32, s *sqlite.Stmt) {
		name, _ := r.strings.get(scope, s.ColumnInt64(4))
		r.tracks.set(scope, s.ColumnInt64(1), track{s.ColumnInt64(2), s.ColumnInt64(3), name})
	})
	r.scan("sample", []string{"track_id", "timestamp", "event_id"}, func(scope int32, s *sqlite.Stmt) {
		r.rows++
		on, ok := r.tracks.get(scope, s.ColumnInt64(1))
		if !ok {
			return
		}
		p, at := r.of(scope, on.process), trace.Time(s.ColumnInt64(2))
		e, _ := r.events.get(scope, s.ColumnInt64(3))
		values := r.counted[[2]int64{int64(scope), s.ColumnInt64(3)}]
		for _, v := range values {
			p.Counter(v.Device, v.Name, v.Unit, at, v.Value, profile.DeviceCounter)
		}
		switch {
		case len(values) > 0:
		case e.text != 0:
			p.Mark(r.thread(scope, on.thread), e.text, at)
		default:
			p.Mark(r.thread(scope, on.thread), r.name(on.name, true), at)
		}
	})
}
