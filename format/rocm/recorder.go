package rocm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A recorder makes profiles from the rows of one input, applying the filter of its options. It is not safe for concurrent
// use.
type recorder struct {
	in    *format.Input
	opt   *format.Options
	put   *trace.ArgsAppender // nil omits arguments
	keys  argKeys
	list  trace.ArgList
	keep  *profile.Keeper
	procs []*process
	// What readers saw: rows with events, and events without a name.
	rows, nameless int
}

// argKeys are the names of arguments, which are those of PyTorch's profiler where it has the same arguments.
type argKeys struct{ device, stream, correlation, grid, block, registers, shared, bytes, node trace.Sym }

// newRecorder returns a recorder for an input.
func newRecorder(in *format.Input, opt *format.Options) *recorder {
	r := &recorder{in: in, opt: opt, put: opt.Filter.Appender(opt.Args), keep: profile.NewKeeper(&opt.Filter, opt.Syms)}
	opt.Syms.InternAll(map[*trace.Sym]string{
		&r.keys.device: "device", &r.keys.stream: "stream", &r.keys.correlation: "correlation", &r.keys.grid: "grid", &r.keys.block: "block",
		&r.keys.registers: "registers per thread", &r.keys.shared: "shared memory", &r.keys.bytes: "bytes",
		&r.keys.node: "graph node id",
	})
	return r
}

// A process is the recording of a process.
type process struct {
	r        *recorder
	p        *profile.Profile
	rows     map[rowKey]int32
	devices  map[int32]string // names by number
	used     map[int32]bool   // devices with events
	launches []profile.Launch
	onDevice order.Paged[bool] // by correlation: there was work of it
	blocks   map[int64]block   // allocated memory by address
	sums     map[int32]int64   // of blocks, by device
	// unnumbered means that the machine's numbers of the devices are unknown.
	unnumbered bool
}

// rowKey identifies a row: its kind, and two numbers or a symbol.
type rowKey struct {
	kind profile.RowKind
	a, b int64
	name trace.Sym
}

// newProcess begins the next process.
func (r *recorder) newProcess(pid int64, host string) *process {
	p := &process{r: r, rows: map[rowKey]int32{}, devices: map[int32]string{}, used: map[int32]bool{},
		blocks: map[int64]block{}, sums: map[int32]int64{},
		p: &profile.Profile{Name: r.in.Name, First: math.MaxInt64, Last: math.MinInt64,
			Meta: profile.Meta{Rank: -1, WorldSize: -1, GPU: -1, Host: host, PID: pid}}}
	p.thread(pid) // names the process even if it has no events
	r.procs = append(r.procs, p)
	return p
}

// boot sets the machine of the process; times count from its boot.
func (p *process) boot(machine string) {
	if machine != "" {
		p.p.Meta.Epoch = "boot of " + machine
	}
}

// unix means that times are Unix times, to which shift was added since they were recorded relative to boot.
func (p *process) unix(shift trace.Time) {
	p.p.Meta.Origin, p.p.Meta.Base = profile.OriginUnix, int64(shift)
}

// Unnumbered means that device numbers are those of the recording, and not of the machine.
func (p *process) Unnumbered() { p.unnumbered = true }

// ranked sets the rank from the environment of the process; -1 is unknown.
func (p *process) ranked(rank, size int32) {
	if rank >= 0 {
		p.p.Meta.WorldSize = size
		p.p.Meta.Hints = append(p.p.Meta.Hints, naming.Hint{From: "environment", Rank: rank, Size: size})
	}
}

// Device names an accelerator that the process can see.
func (p *process) Device(number int32, name, uuid string) {
	p.devices[number] = name
	p.p.Meta.Devices = append(p.p.Meta.Devices, profile.Device{ID: int64(number), Name: name, UUID: uuid})
}

// at is the place and time of an event of a device.
type at struct {
	Start, End     trace.Time // ns
	Device, Stream int64
	Correlation    int64 // of the call that requested it; 0 is unknown
}

// A dispatch is one run of a kernel. Sizes are work-items; 0 is unknown.
type dispatch struct {
	at
	Name              trace.Sym
	Grid, Group       [3]int64
	Flat              bool // only the products of sizes are known; they are in the first elements
	Registers, Shared int64
	Node              int64 // in the graph that ran it; 0 is none
	Counters          []counted
}

// counted is the value of a hardware counter for a kernel.
type counted struct {
	Name, Unit trace.Sym
	Device     int32
	Value      float64
}

// addTo returns the counters of a kernel with a value of one part of the device, which is added to those of the others.
func addTo(list []counted, c counted) []counted {
	if i := slices.IndexFunc(list, func(o counted) bool { return o.Name == c.Name }); i >= 0 {
		list[i].Value += c.Value
		return list
	}
	return append(list, c)
}

// An agent is a processor; number is that among the GPUs of the host.
type agent struct {
	number int32
	gpu    bool
}

// A symbol is what runs of a kernel have in common.
type symbol struct {
	name      trace.Sym
	registers int64
}

// name returns the symbol of a name, and counts missing ones.
func (r *recorder) name(text string) trace.Sym {
	if text == "" {
		r.nameless++
	}
	return r.opt.Syms.Intern(cmp.Or(text, profile.NoName))
}

// kernel adds a kernel.
func (p *process) kernel(k *dispatch) {
	row := p.stream(k.Device, k.Stream)
	if !p.saw(k.Start, k.End) {
		return
	}
	blocks, threads := [3]int64{}, int64(1)
	for i := range blocks {
		threads *= k.Group[i]
		if k.Group[i] > 0 {
			blocks[i] = (k.Grid[i] + k.Group[i] - 1) / k.Group[i]
		}
	}
	event := p.add(row, profile.KernelCategory, k.Name, k.Start, k.End, k.Correlation, func(l trace.ArgList) trace.ArgList {
		keys := &p.r.keys
		l = p.r.place(l, &k.at)
		if !k.Flat {
			l = dims(dims(l, keys.grid, blocks), keys.block, k.Group)
		}
		if p.r.opt.Filter.Args == profile.ArgsAll {
			l = l.Int(keys.registers, k.Registers).Int(keys.shared, k.Shared)
			if k.Node != 0 {
				l = l.Int(keys.node, k.Node)
			}
			for _, c := range k.Counters {
				l = l.Float(c.Name, c.Value)
			}
		}
		return l
	})
	if g := profile.GridOf(blocks[0]*blocks[1]*blocks[2], threads); event != profile.NoEvent && g != 0 {
		p.p.Grids = memory.Append(p.p.Grids, profile.KernelGrid{Event: event, Grid: g})
	}
	p.worked(row, k.Name, &k.at)
	if kernelname.MeetsOthers(p.r.opt.Syms.Name(k.Name)) {
		p.p.Collectives.Add(&profile.Collective{Event: event, Row: row, Time: k.Start, Dur: dur(k.Start, k.End), Name: k.Name,
			OnGPU: true, Seq: -1, In: -1, Out: -1, GroupSize: -1, Correlation: k.Correlation})
	}
	for _, c := range k.Counters {
		p.sample(int32(k.Device), c.Name, c.Unit, k.Start, c.Value)
		p.sample(int32(k.Device), c.Name, c.Unit, k.End, 0)
		p.count(int32(k.Device), c.Name, c.Unit, k.End, c.Value, profile.DeviceCounter)
	}
}

// dims adds the dimensions of a grid or a block.
func dims(l trace.ArgList, key trace.Sym, v [3]int64) trace.ArgList {
	if v == [3]int64{} {
		return l
	}
	return l.Ints(key, v[:]...)
}

// place adds the arguments about where something ran.
func (r *recorder) place(l trace.ArgList, at *at) trace.ArgList {
	if at.Correlation != 0 {
		l = l.Int(r.keys.correlation, at.Correlation)
	}
	return l.Int(r.keys.device, at.Device).Int(r.keys.stream, at.Stream)
}

// Copy adds a copy or a memory fill. Argument what is the producer's name for it, and bytes is -1 if unknown.
func (p *process) Copy(at *at, what string, bytes int64) {
	row := p.stream(at.Device, at.Stream)
	if !p.saw(at.Start, at.End) {
		return
	}
	text, category := copyName(what)
	name := p.r.opt.Syms.Intern(text)
	p.add(row, category, name, at.Start, at.End, at.Correlation, func(l trace.ArgList) trace.ArgList {
		if l = p.r.place(l, at); bytes >= 0 {
			l = l.Int(p.r.keys.bytes, bytes)
		}
		return l
	})
	p.worked(row, name, at)
}

// worked joins a device's work to the call that requested it, and adds it to the fingerprint.
func (p *process) worked(row int32, name trace.Sym, at *at) {
	f := &p.r.opt.Filter
	p.used[int32(at.Device)] = true
	if f.Fingerprint {
		p.p.Fingerprint = memory.Append(p.p.Fingerprint, profile.Fingerprint{Time: at.Start, Dur: dur(at.Start, at.End), Name: name, Row: row})
	}
	*p.onDevice.At(at.Correlation) = true
}

// Kinds of calls, in the terms of PyTorch's profiler.
const (
	runtimeCall = "cuda_runtime" // HIP, RCCL
	driverCall  = "cuda_driver"  // HSA
)

// call adds a call of a thread. kind is runtimeCall or driverCall.
func (p *process) call(tid int64, kind string, name trace.Sym, from, to trace.Time, correlation int64) {
	if !p.saw(from, to) {
		return
	}
	row := p.thread(tid)
	p.add(row, kind, name, from, to, correlation, func(l trace.ArgList) trace.ArgList {
		if correlation != 0 {
			l = l.Int(p.r.keys.correlation, correlation)
		}
		return l
	})
	if correlation != 0 {
		p.launches = memory.Append(p.launches, profile.Launch{Time: from, Correlation: correlation, Row: row})
	}
}

// Range adds an annotation of a thread.
func (p *process) Range(tid int64, name trace.Sym, from, to trace.Time) {
	if !p.saw(from, to) {
		return
	}
	row := p.thread(tid)
	event := p.add(row, profile.AnnotationCategory, name, from, to, 0, nil)
	if step, ok := profile.ParseStep(p.r.opt.Syms.Name(name)); ok {
		p.p.Steps = append(p.p.Steps, profile.Step{Event: event, Row: row, Time: from, Dur: dur(from, to), Name: name, Kind: step.Kind, Batch: step.Batch})
	}
}

// other adds an event of a thread or the driver that is in no report, such as migrations of pages.
func (p *process) other(tid int64, category string, name trace.Sym, from, to trace.Time) {
	if p.saw(from, to) {
		p.add(p.thread(tid), category, name, from, to, 0, nil)
	}
}

// mark adds an instant of a thread.
func (p *process) mark(tid int64, name trace.Sym, at trace.Time) {
	category := p.r.opt.Syms.Intern(profile.InstantCategory)
	if !p.saw(at, at) || !p.r.keep.Category(category) || !p.r.keep.Within(name, at, at) {
		return
	}
	p.p.Instants = memory.Append(p.p.Instants, profile.Instant{Time: at, Row: p.thread(tid), Name: name, Cat: category})
}

// counter adds the value of a device's counter from a time on.
func (p *process) counter(device int32, name, unit trace.Sym, at trace.Time, value float64, kind profile.CounterKind) {
	if !p.saw(at, at) {
		return
	}
	p.sample(device, name, unit, at, value)
	p.count(device, name, unit, at, value, kind)
}

// sample draws a value.
func (p *process) sample(device int32, name, unit trace.Sym, at trace.Time, value float64) {
	f := &p.r.opt.Filter
	if f.IndexOnly || !p.r.keep.Within(name, at, at) {
		return
	}
	row := p.row(rowKey{profile.RowCounter, int64(device), 0, name}, func() profile.Row {
		return profile.Row{Kind: profile.RowCounter, PID: int64(device), PIDText: strconv.Itoa(int(device)), Folder: p.folder(device),
			Name: p.r.opt.Syms.Name(name), Unit: p.r.opt.Syms.Name(unit)}
	})
	p.p.Samples = memory.Append(p.p.Samples, profile.CounterSample{Time: at, Value: value, Row: row})
}

// count keeps a value for reports.
func (p *process) count(device int32, name, unit trace.Sym, at trace.Time, value float64, kind profile.CounterKind) {
	p.p.Counters = memory.Append(p.p.Counters, profile.CounterValue{Time: at, Source: p.r.opt.Syms.Intern("GPU " + strconv.Itoa(int(device))), Name: name, Unit: unit, Value: value, Kind: kind})
}

// saw extends the times of the process, and reports whether an event's times are possible.
func (p *process) saw(from, to trace.Time) bool {
	if !profile.IsPossible(from) || !profile.IsPossible(to) {
		p.r.opt.Diags.Add(trace.RocmTime.Of(p.r.in.Name, from, to))
		return false
	}
	p.p.Total++
	p.p.First, p.p.Last = min(p.p.First, from), max(p.p.Last, from, to)
	return true
}

func dur(from, to trace.Time) int64 { return max(0, int64(to-from)) }

// add adds an event if the filter keeps it, with the arguments that args appends to a list; args may be nil. It returns the
// event's index, or NoEvent.
func (p *process) add(row int32, category string, name trace.Sym, from, to trace.Time, correlation int64, args func(trace.ArgList) trace.ArgList) int32 {
	r := p.r
	cat := r.opt.Syms.Intern(category)
	if !r.keep.Keeps(cat, name, from, to) {
		return profile.NoEvent
	}
	s := profile.Slice{Time: from, Dur: dur(from, to), Correlation: correlation, Name: name, Cat: cat, Place: profile.SliceKindOf(category).On(row)}
	if r.put != nil && args != nil {
		if r.list = args(r.list[:0]); len(r.list) > 0 {
			s.Args = r.put.Put(r.list)
		}
	}
	p.p.Events = memory.Append(p.p.Events, s)
	return int32(len(p.p.Events) - 1)
}

func (p *process) row(key rowKey, fresh func() profile.Row) int32 {
	return order.At(p.rows, &p.p.Rows, key, fresh)
}

func (p *process) thread(tid int64) int32 {
	return p.row(rowKey{profile.RowThread, tid, 0, 0}, func() profile.Row {
		pid, id := strconv.FormatInt(p.p.Meta.PID, 10), strconv.FormatInt(tid, 10)
		return profile.Row{Kind: profile.RowThread, PID: p.p.Meta.PID, PIDText: pid, TID: tid, TIDText: id, Name: "thread " + id}
	})
}

// stream returns the row of a stream.
func (p *process) stream(device, stream int64) int32 {
	return p.row(rowKey{profile.RowStream, device, stream, 0}, func() profile.Row {
		id := strconv.FormatInt(stream, 10)
		return profile.Row{Kind: profile.RowStream, PID: device, PIDText: strconv.FormatInt(device, 10), TID: stream, TIDText: id,
			Name: "stream " + id, Folder: p.folder(int32(device))}
	})
}

// folder returns the folder for rows of a device.
func (p *process) folder(device int32) string {
	text := "ROCm > GPU " + strconv.Itoa(int(device))
	if name := p.devices[device]; name != "" {
		text += " (" + name + ")"
	}
	return text
}

// profiles returns the processes with events, or the first one if there are none.
func (r *recorder) profiles() []*profile.Profile {
	var list []*profile.Profile
	for _, p := range r.procs {
		if p.p.Total > 0 || len(r.procs) == 1 {
			list = append(list, p.finish())
		}
	}
	if len(list) == 0 && len(r.procs) > 0 {
		list = append(list, r.procs[0].finish())
	}
	return list
}

// finish completes the tables of a process.
func (p *process) finish() *profile.Profile {
	x := p.p
	if x.Total == 0 {
		x.First, x.Last = 0, 0
	}
	x.PlaceCollectives(p.launches, nil)
	for i := range x.Events { // even calls that launched nothing have numbers
		if e := &x.Events[i]; e.IsLaunch() && !p.onDevice.Get(e.Correlation) {
			e.Correlation = 0
		}
	}
	x.Steps = profile.WholeSteps(x.Steps, p.r.opt.Syms)
	x.Meta.OnGPU = len(p.used) > 0
	if len(p.used) == 1 && !p.unnumbered {
		for device := range p.used {
			x.Meta.GPU = device
		}
	}
	if x.Collectives.Len() > 0 {
		x.Meta.Backend = "nccl" // torch.distributed's name for RCCL
	}
	slices.SortStableFunc(x.Meta.Devices, func(a, b profile.Device) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(x.Counters, func(a, b profile.CounterValue) int { return cmp.Compare(a.Time, b.Time) })
	return x
}

// copyWords are parts of producers' names of copies, in capitals and without separators, with the direction in the words of
// PyTorch's profiler.
var copyWords = []struct{ part, direction string }{
	{"HOSTTODEVICE", "HtoD"}, {"DEVICETOHOST", "DtoH"}, {"DEVICETODEVICE", "DtoD"}, {"HOSTTOHOST", "HtoH"}, {"PEERTOPEER", "PtoP"},
	{"H2D", "HtoD"}, {"D2H", "DtoH"}, {"D2D", "DtoD"}, {"H2H", "HtoH"}, {"P2P", "PtoP"},
}

// copyName returns PyTorch's name of a copy, and its category, for a producer's name: "MEMORY_COPY_HOST_TO_DEVICE",
// "CopyHostToDevice", "HostToDevice".
func copyName(what string) (name, category string) {
	plain := strings.ToUpper(strings.NewReplacer("_", "", " ", "", "-", "").Replace(what))
	for _, w := range copyWords {
		if strings.Contains(plain, w.part) {
			return "Memcpy " + w.direction, profile.CopyCategories[0]
		}
	}
	if strings.Contains(plain, "SET") || strings.Contains(plain, "FILL") {
		return "Memset (Device)", profile.CopyCategories[1]
	}
	return fmt.Sprintf("Memcpy Unknown (%s)", what), profile.CopyCategories[0]
}
