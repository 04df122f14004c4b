package torchdump

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// MemorySnapshot reads the snapshots of memory that PyTorch writes
// (torch.cuda.memory._dump_snapshot; SGLang's activity MEM): pickles of its allocator's memory on
// each device, and of the actions before.
//
// # What is odd
//
//   - Entries have the requested size, blocks also their real size.
//   - The list of entries is a ring with the newest ones; SGLang's holds 100,000. Blocks are always complete.
//     There are no entries at all if recording was off.
//   - Entries are on the clock of PyTorch's profiler, in microseconds of Unix time. PyTorch before
//     2.2 has no times.
//   - PyTorch 2.0 has blocks without addresses, whose sizes are in a list history.
//   - An entry of a failed allocation has the free memory of the device instead of an address.
//   - A segment is stamped after the call that allocated it: the time from the
//     previous entry to the stamp is an upper bound of the duration of the call.
//   - Frames are shared between entries. Those of C++ have no file.
var MemorySnapshot = &format.Format{
	Name: "PyTorch memory snapshot",
	Noun: "memory snapshot",
	Doc:  "snapshots of memory (*-memory*.pickle), as PyTorch and SGLang's activity MEM write them",
	For:  "'sgtrace report --memory' or 'sgtrace merge'",
	Sniff: func(head []byte) bool {
		return pickle.Begins(head) &&
			(bytes.Contains(head, []byte("segments")) && bytes.Contains(head, []byte("total_size")) || bytes.Contains(head, []byte("device_traces")))
	},
	Index: indexSnapshot,
}

func indexSnapshot(in *format.Input, opt *format.Options) (*format.Source, error) {
	x, err := readSnapshot(in, opt.Syms)
	if err != nil {
		if len(x.Devices) == 0 {
			return nil, err
		}
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	if err == nil && !slices.ContainsFunc(x.Devices, func(d *recorder.Device) bool { return len(d.Entries) > 0 }) {
		opt.Diags.Add(trace.MemoryNoTrace.Of(in.Name))
	}
	if opt.Heap != nil {
		opt.Heap.Add(x)
	}
	p := drawCounters(in.Name, x, opt)
	return &format.Source{Profiles: []*profile.Profile{p},
		Stream: func(opt *format.Options) ([]*profile.Profile, error) {
			return []*profile.Profile{drawCounters(in.Name, x, opt)}, nil
		},
		Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
			v.Traces = append(v.Traces, inventory.Trace{File: in.Name, Size: size, Producer: "PyTorch memory snapshot", Absolute: p.Meta.Origin == profile.OriginUnix})
			for _, is := range are[0] {
				v.AddProcess(inventory.Process{File: in.Name, Is: is, N: 1, World: -1, Events: int64(p.Total), Steps: -1, Collectives: -1})
			}
		}}, nil
}

// counterSteps is the resolution of a counter on a timeline: the number of steps up to the peak.
const counterSteps = 4096

// drawCounters makes counters of the memory of each device, and instants of failures. It is not used for the numbers in
// reports: of millions of entries, it omits those that nobody could see.
func drawCounters(name string, x *recorder.Snapshot, opt *format.Options) *profile.Profile {
	p := &profile.Profile{Name: name, First: math.MaxInt64, Last: math.MinInt64, Meta: profile.Meta{Rank: -1, WorldSize: -1, GPU: -1, Origin: profile.OriginUnix}}
	p.Rows = append(p.Rows, profile.Row{Kind: profile.RowOther, Name: "memory"})
	f := &opt.Filter
	for _, d := range x.Devices {
		if len(d.Entries) == 0 {
			continue
		}
		r := d.Replay()
		number := strconv.Itoa(int(d.Number))
		row := int32(len(p.Rows))
		for _, what := range []string{profile.MemoryAllocated, profile.MemoryReserved} {
			p.Rows = append(p.Rows, profile.Row{Kind: profile.RowCounter, PID: int64(d.Number), PIDText: number, Name: what, Unit: "bytes", Folder: "CUDA > GPU " + number})
		}
		for i := range d.Entries {
			e := &d.Entries[i]
			if e.Time == 0 {
				continue
			}
			p.Total++
			p.First, p.Last = min(p.First, e.Time), max(p.Last, e.Time)
			if e.Action == recorder.OutOfMemory && !f.IndexOnly && f.Overlaps(e.Time, e.Time) {
				p.Instants = append(p.Instants, profile.Instant{Time: e.Time, Name: opt.Syms.Intern("out of memory: " + strconv.FormatInt(e.Size, 10) + " bytes"), Cat: opt.Syms.Intern(profile.InstantCategory)})
			}
		}
		last := recorder.Usage{Allocated: -1 << 62, Reserved: -1}
		d.Walk(r.Start, func(i int, u recorder.Usage) {
			at := d.Entries[i].Time
			if at == 0 || f.IndexOnly || !f.Overlaps(at, at) {
				return
			}
			if diff := u.Allocated - last.Allocated; max(diff, -diff)*counterSteps >= r.Peak.Allocated || i == r.PeakAt || i == len(d.Entries)-1 {
				last.Allocated = u.Allocated
				p.Samples = memory.Append(p.Samples, profile.CounterSample{Time: at, Value: float64(u.Allocated), Row: row})
			}
			if u.Reserved != last.Reserved {
				last.Reserved = u.Reserved
				p.Samples = memory.Append(p.Samples, profile.CounterSample{Time: at, Value: float64(u.Reserved), Row: row + 1})
			}
		})
	}
	if p.Total == 0 {
		p.First, p.Last, p.Total, p.Meta.Origin = 0, 0, 1, profile.OriginUnknown // the time of the snapshot, which is unknown
	}
	return p
}
