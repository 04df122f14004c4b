package rocm

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// rocprofInfo is the launch of a kernel.
type rocprofInfo struct {
	Agent  handle `json:"agent_id"`
	Queue  handle `json:"queue_id"`
	Kernel int64  `json:"kernel_id"`
	ID     int64  `json:"dispatch_id"`
	Shared int64  `json:"group_segment_size"`
	Group  extent `json:"workgroup_size"`
	Grid   extent `json:"grid_size"`
}

// A rocprofRecord is a record with a time: each list has some of the fields.
type rocprofRecord struct {
	Kind        int
	Operation   int
	Thread      int64                    `json:"thread_id"`
	Correlation struct{ Internal int64 } `json:"correlation_id"`
	Start       int64                    `json:"start_timestamp"`
	End         int64                    `json:"end_timestamp"`
	Dispatch    rocprofInfo              `json:"dispatch_info"`
	Stream      *handle                  `json:"stream_id"`
	To          handle                   `json:"dst_agent_id"`
	From        handle                   `json:"src_agent_id"`
	Bytes       *int64                   `json:"bytes"`
	Agent       handle                   `json:"agent_id"`
	Address     string                   `json:"address"`
	Size        int64                    `json:"allocation_size"`
}

// records reads one list of records.
func (r *rocprofReader) records(key string) error {
	add := map[string]func(*process, *rocprofRecord){
		"kernel_dispatch": r.kernel, "memory_copy": r.copy, "marker_api": r.marker, "memory_allocation": r.allocation,
		"hip_api": r.call(runtimeCall), "rccl_api": r.call(runtimeCall), "rocdecode_api": r.call(runtimeCall),
		"rocjpeg_api": r.call(runtimeCall), "hsa_api": r.call(driverCall),
	}[key]
	if add == nil {
		return r.skip()
	}
	return eachOf(r, func(x *rocprofRecord) {
		r.to.rows++
		add(r.processOf(), x)
	})
}

// countedOnly adds the kernels that have only counters.
func (r *rocprofReader) countedOnly() {
	for _, id := range slices.Sorted(maps.Keys(r.untraced)) {
		r.to.rows++
		r.kernel(r.processOf(), r.untraced[id])
	}
}

// named returns the name of a record's operation.
func (r *rocprofReader) named(x *rocprofRecord) string {
	if x.Kind < 0 || x.Kind >= len(r.kinds) || x.Operation < 0 || x.Operation >= len(r.kinds[x.Kind].Operations) {
		return ""
	}
	return r.kinds[x.Kind].Operations[x.Operation]
}

func (r *rocprofReader) at(x *rocprofRecord, on agent, queue handle) at {
	at := at{Start: trace.Time(x.Start), End: trace.Time(x.End), Device: int64(on.number), Stream: queue.Handle, Correlation: x.Correlation.Internal}
	if x.Stream != nil {
		at.Stream = x.Stream.Handle
	}
	return at
}

func (r *rocprofReader) kernel(p *process, x *rocprofRecord) {
	i := &x.Dispatch
	delete(r.untraced, i.ID)
	what := r.symbols[i.Kernel]
	k := dispatch{at: r.at(x, r.agents[i.Agent.Handle], i.Queue), Name: what.name, Registers: what.registers, Shared: i.Shared, Counters: r.counted[i.ID],
		Grid: [3]int64{i.Grid.X, i.Grid.Y, i.Grid.Z}, Group: [3]int64{i.Group.X, i.Group.Y, i.Group.Z}}
	if k.Name == 0 {
		k.Name = r.to.name("")
	}
	p.kernel(&k)
}

func (r *rocprofReader) copy(p *process, x *rocprofRecord) {
	on := r.agents[x.To.Handle]
	if other := r.agents[x.From.Handle]; other.gpu && !on.gpu {
		on = other
	}
	at, size := r.at(x, on, handle{}), int64(-1)
	if x.Bytes != nil {
		size = *x.Bytes
	}
	p.Copy(&at, r.named(x), size)
}

func (r *rocprofReader) allocation(p *process, x *rocprofRecord) {
	p.allocation(r.named(x), x.Address, x.Size, r.agents[x.Agent.Handle], trace.Time(x.End))
}

func (r *rocprofReader) call(kind string) func(*process, *rocprofRecord) {
	return func(p *process, x *rocprofRecord) {
		p.call(x.Thread, kind, r.to.name(r.named(x)), trace.Time(x.Start), trace.Time(x.End), x.Correlation.Internal)
	}
}

// marker adds a range or a mark of roctx.
func (r *rocprofReader) marker(p *process, x *rocprofRecord) {
	text, what := r.texts[x.Correlation.Internal], r.named(x)
	if text == 0 {
		text = r.to.name(what)
	}
	from, to := trace.Time(x.Start), trace.Time(x.End)
	switch {
	case strings.Contains(what, "Mark") || from == to:
		p.mark(x.Thread, text, from)
	case strings.Contains(what, "Pop") || strings.Contains(what, "Stop"):
		p.other(x.Thread, profile.InstantCategory, text, from, to) // the call that ended a range
	default:
		p.Range(x.Thread, text, from, to)
	}
}

// allocatedMemory is the counter of the memory allocated by calls on a device.
const allocatedMemory = "memory allocated through HIP"

// A block is an allocated block of device memory.
type block struct {
	size   int64
	device int32
}

// allocation adds an allocation on a device, or a free, by the name that rocprofv3 gives it.
func (p *process) allocation(what, address string, size int64, on agent, at trace.Time) {
	number, err := strconv.ParseInt(address, 0, 64)
	switch {
	case err != nil:
	case strings.Contains(what, "FREE"):
		p.free(number, at)
	case strings.Contains(what, "ALLOCATE") && on.gpu:
		p.allocate(on.number, number, size, at)
	}
}

// allocate adds an allocation of device memory.
func (p *process) allocate(device int32, address, size int64, at trace.Time) {
	p.release(address)
	p.blocks[address] = block{size, device}
	p.sums[device] += size
	p.allocated(device, at)
}

// free records a free. It has the address, but not the size; blocks allocated before the recording, or on the host, are
// unknown.
func (p *process) free(address int64, at trace.Time) {
	if b, known := p.release(address); known {
		p.allocated(b.device, at)
	}
}

func (p *process) release(address int64) (b block, known bool) {
	if b, known = p.blocks[address]; known {
		delete(p.blocks, address)
		p.sums[b.device] -= b.size
	}
	return b, known
}

func (p *process) allocated(device int32, at trace.Time) {
	p.counter(device, p.r.opt.Syms.Intern(allocatedMemory), p.r.opt.Syms.Intern("bytes"), at, float64(p.sums[device]), profile.MemoryCounter)
}
