package rocm

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	pftrace "github.com/sgtrace/sgtrace/perfetto/reader"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// RocprofPerfetto reads what rocprofv3 writes with --output-format pftrace (*_results.pftrace).
//
// # What is odd
//
//   - They contain the time at which the host booted, as no other form does: snapshots of several clocks.
//   - If two kernels of a queue overlap, both are cut in the middle of the overlap. Of grids and
//     workgroups, there are only products. So JSON and databases in the same folder are read instead.
//   - Agents have numbers as 'Agent-4', which include CPUs, or as 'GPU-0', depending on an option.
//   - Events of one stream may overlap and are not in order: their ends are in their arguments.
//   - Arguments that are floating-point numbers are values of hardware counters.
//   - Tracks of memory end with an artificial 0. Those of copies and counters repeat the data of
//     copies and kernels.
//   - The command line is in the description of the process, and never read.
var RocprofPerfetto = &format.Format{
	Name:    "rocprofv3 Perfetto trace",
	Doc:     "Perfetto traces of rocprofv3 (*_results.pftrace), as --output-format pftrace writes them",
	For:     "'sgtrace merge', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Noun:    "rocprofv3 Perfetto trace",
	Sniff:   isPerfetto,
	Index:   index("rocprofv3", readPerfetto),
	Beside:  true,
	Machine: true,
}

// isPerfetto reports whether a head is from a trace of rocprofv3: the names of arguments are in the first event, and those
// of tracks before all events.
func isPerfetto(head []byte) bool {
	return len(head) > 0 && head[0] == 1<<3|2 &&
		(bytes.Contains(head, []byte("begin_ns")) && bytes.Contains(head, []byte("corr_id")) || trackNames.Match(head))
}

var trackNames = lazyregexp.New(`STREAM \[" \d+ "\] |COMPUTE \w+ \[\d+\] QUEUE \[\d+\]`)

// perfettoReader reads one trace.
type perfettoReader struct {
	opt    *format.Options
	to     *recorder
	p      *process
	pid    int64
	shift  trace.Time // offset to Unix time, if unix
	unix   bool
	meters map[uint64]*memoryTrack // by the UUID of a track
	syms   map[string]trace.Sym
	agents map[agentLabel]bool
	counts bool // there are tracks of hardware counters
	lost   uint64
}

// A memoryTrack tracks the allocated memory of a device.
type memoryTrack struct {
	agent agentLabel
	unit  trace.Sym
	scale float64
	// The previous value, and its time.
	value float64
	at    trace.Time
	began bool
}

func readPerfetto(in *format.Input, opt *format.Options, to *recorder) error {
	if other := written(in); other != "" && in.Found {
		return toldBeside(other)
	}
	f, err := in.Open()
	if err != nil {
		return err
	}
	r := &perfettoReader{opt: opt, to: to, meters: map[uint64]*memoryTrack{}, syms: map[string]trace.Sym{}, agents: map[agentLabel]bool{}}
	for p, err := range pftrace.Others(f) {
		if err != nil {
			opt.Diags.Add(trace.InputDamaged.At(trace.Pos{File: in.Name, Offset: p.Offset}, err))
			break
		}
		r.packet(&p)
	}
	r.process()
	switch {
	case to.rows > 0:
	case r.counts:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has counters and no kernel that they are of", "kernels were not traced: add --kernel-trace"))
	default:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has no events", "nothing was traced"))
	}
	for a := range r.agents {
		if !a.numbered() {
			opt.Diags.Add(trace.RocmAgents.Of(in.Name))
			break
		}
	}
	if r.lost > 0 {
		opt.Diags.Add(trace.RocmLost.Of(in.Name, r.lost))
	}
	return f.Close()
}

// written returns the file next to a trace that has the same content, and more: rocprofv3 writes a file for each requested
// format.
func written(in *format.Input) string {
	stem, ok := strings.CutSuffix(in.Path, ".pftrace")
	if !ok {
		return ""
	}
	for _, ext := range []string{".db", ".json"} {
		if info, err := os.Stat(stem + ext); err == nil && info.Size() > 0 {
			return stem[strings.LastIndexByte(stem, '/')+1:] + ext
		}
	}
	return ""
}

// toldBeside is the name of the file with more content.
type toldBeside string

func (b toldBeside) Error() string {
	return fmt.Sprintf("left out, since %s beside it has the same", string(b))
}
func (b toldBeside) Is(target error) bool { return target == format.ErrNotNeeded }

func (r *perfettoReader) packet(p *pftrace.Packet) {
	r.lost += p.Lost
	switch {
	case p.Unix != nil && r.p == nil:
		r.shift, r.unix = trace.Time(*p.Unix), true
	case p.Track != nil:
		r.pid = cmp.Or(r.pid, p.Track.PID)
		if m := memoryOf.FindStringSubmatch(p.Track.Name); p.Track.Counter && m != nil && m[3] == "GPU" {
			r.meters[p.Track.UUID] = &memoryTrack{agent: agentLabel{m[1], number(m[2])}, unit: r.sym(p.Track.Unit), scale: p.Track.Scale}
		}
		r.counts = r.counts || p.Track.Counter && strings.Contains(p.Track.Name, "] PMC ")
	case p.Event != nil:
		r.event(p.Event)
	}
}

// memoryOf matches names of tracks of memory: "ALLOCATE BYTES on Agent [4] (GPU)".
var memoryOf = lazyregexp.New(`^ALLOCATE BYTES on (\w+) \[(\d+)\] \((\w+)\)$`)

func number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// process returns the process, creating it when its first data arrives.
func (r *perfettoReader) process() *process {
	if r.p == nil {
		r.p = r.to.newProcess(r.pid, "")
		if r.unix {
			r.p.unix(r.shift)
		}
	}
	return r.p
}

func (r *perfettoReader) sym(text string) trace.Sym {
	s, ok := r.syms[text]
	if !ok && text != "" {
		s = r.opt.Syms.Intern(text)
		r.syms[text] = s
	}
	return s
}

// An agentLabel is the name of an agent: "Agent-4", or "GPU-0" if agents are numbered by kind.
type agentLabel struct {
	kind   string
	number int32
}

// numbered reports whether the number of an agent is that of a GPU.
func (a agentLabel) numbered() bool { return a.kind == "GPU" }

// labelOf parses an event's name of an agent.
func labelOf(a *pftrace.Arg) agentLabel {
	if a.Kind != trace.ArgString {
		return agentLabel{"Agent", int32(a.Bits)}
	}
	kind, n, _ := strings.Cut(string(a.Text), "-")
	return agentLabel{kind, number(n)}
}

// device adds an agent to the devices of the process, and returns its number.
func (r *perfettoReader) device(a agentLabel) int64 {
	if !r.agents[a] {
		r.agents[a] = true
		name := ""
		if !a.numbered() {
			name = fmt.Sprint(a.kind, "-", a.number)
			r.process().Unnumbered()
		}
		r.process().Device(a.number, name, "")
	}
	return int64(a.number)
}

// perfettoEvent is the arguments of an event.
type perfettoEvent struct {
	name             trace.Sym
	from, to         trace.Time
	tid, correlation int64
	operation        int64
	agent, src, dst  agentLabel
	queue, stream    int64
	hasStream        bool
	bytes            int64
	grid, group      int64
	registers, lds   int64
	counters         []counted
}

// event adds an event. Its end is in its arguments: events of one stream may overlap, so that the ends in the file are
// ambiguous.
func (r *perfettoReader) event(e *pftrace.Event) {
	if e.Kind == pftrace.Counter {
		r.memory(e)
		return
	}
	if e.Kind != pftrace.Begin {
		return
	}
	add := map[string]func(*process, *perfettoEvent){"kernel_dispatch": r.dispatched, "memory_copy": r.copied, "marker_api": r.marked}[e.Category]
	kind, isCall := callCategories[e.Category]
	if add == nil && !isCall && e.Category != "kfd_events" {
		return
	}
	r.to.rows++
	x := perfettoEvent{from: math.MinInt64, to: math.MinInt64, bytes: -1}
	r.arguments(&x, e)
	if x.name = r.sym(e.Name); x.name == 0 {
		x.name = r.to.name("")
	}
	p := r.process()
	switch {
	case x.to == math.MinInt64: // saw reports that these times are impossible
		p.other(x.tid, profile.InstantCategory, x.name, x.from, x.to)
	case add != nil:
		add(p, &x)
	case isCall:
		p.call(x.tid, kind, x.name, x.from, x.to, x.correlation)
	default:
		p.other(x.tid, "kfd", x.name, x.from, x.to)
	}
}

// callCategories are the categories of calls.
var callCategories = map[string]string{"hip_api": runtimeCall, "rccl_api": runtimeCall, "rocdecode_api": runtimeCall,
	"rocjpeg_api": runtimeCall, "rocshmem_api": runtimeCall, "hipfile_api": runtimeCall, "hsa_api": driverCall}

// arguments reads the arguments of an event.
func (r *perfettoReader) arguments(x *perfettoEvent, e *pftrace.Event) {
	for i := range e.Args {
		a := &e.Args[i]
		n := int64(a.Bits)
		switch a.Name {
		case "begin_ns":
			x.from = trace.Time(n) + r.shift
		case "end_ns":
			x.to = trace.Time(n) + r.shift
		case "tid":
			x.tid = n
		case "corr_id":
			x.correlation = n
		case "operation":
			x.operation = n
		case "agent":
			x.agent = labelOf(a)
		case "src_agent":
			x.src = labelOf(a)
		case "dst_agent":
			x.dst = labelOf(a)
		case "queue":
			x.queue = n
		case "stream_ID":
			x.stream, x.hasStream = n, true
		case "copy_bytes":
			x.bytes = n
		case "workgroup_size":
			x.group = n
		case "grid_size":
			x.grid = n
		case "VGPR_Count":
			x.registers = n
		case "LDS_Block_Size":
			x.lds = n
		default:
			if a.Kind == trace.ArgFloat { // only values of hardware counters are floats
				x.counters = append(x.counters, counted{Name: r.sym(a.Name), Value: math.Float64frombits(a.Bits), Device: x.agent.number})
			}
		}
	}
}

func (r *perfettoReader) at(x *perfettoEvent, on agentLabel) at {
	at := at{Start: x.from, End: x.to, Device: r.device(on), Stream: x.queue, Correlation: x.correlation}
	if x.hasStream {
		at.Stream = x.stream
	}
	return at
}

func (r *perfettoReader) dispatched(p *process, x *perfettoEvent) {
	p.kernel(&dispatch{at: r.at(x, x.agent), Name: x.name, Flat: true, Grid: [3]int64{x.grid, 1, 1}, Group: [3]int64{x.group, 1, 1},
		Registers: x.registers, Shared: x.lds, Counters: x.counters})
}

// copied adds a copy, which belongs to the device at either end that is a GPU.
func (r *perfettoReader) copied(p *process, x *perfettoEvent) {
	what := r.opt.Syms.Name(x.name)
	on := x.dst
	if name, _ := copyName(what); strings.HasPrefix(name, "Memcpy DtoH") {
		on = x.src
	}
	at := r.at(x, on)
	p.Copy(&at, what, x.bytes)
}

// marked adds a mark or range of roctx: the number of the operation is 0 for a mark, and names that are not texts of the
// program are names of functions.
func (r *perfettoReader) marked(p *process, x *perfettoEvent) {
	switch {
	case x.operation == 0 || x.from == x.to:
		p.mark(x.tid, x.name, x.from)
	case strings.HasPrefix(r.opt.Syms.Name(x.name), "roctx"):
		p.other(x.tid, profile.InstantCategory, x.name, x.from, x.to)
	default:
		p.Range(x.tid, x.name, x.from, x.to)
	}
}

// memory adds the previous value of a memory track when the next one arrives, since the last one is an artificial 0.
func (r *perfettoReader) memory(e *pftrace.Event) {
	m := r.meters[e.Track]
	if m == nil {
		return
	}
	if m.began {
		r.to.rows++
		r.process().counter(int32(r.device(m.agent)), r.sym(allocatedMemory), m.unit, m.at, m.value, profile.MemoryCounter)
	}
	m.began, m.at, m.value = true, trace.Time(e.Time)+r.shift, e.Value*m.scale
}
