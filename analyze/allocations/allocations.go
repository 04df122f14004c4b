package allocations

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// Memory holds the data of snapshots.
type Memory struct {
	syms    *trace.Symbols
	Devices []Device
	Holders []Holder
	Stalls  []Stall
	Failed  []Failure
	Growing []Growth
}

// A Failure is an allocation for which the device had no memory.
type Failure struct {
	Rank   string
	Number int32
	Time   trace.Time     // 0 if unknown
	Asked  int64          // bytes
	Left   int64          // bytes that the device had left
	Where  trace.Sym      // 0 if unknown
	Use    recorder.Usage // of the allocator at that moment
}

// A Device is the memory that the allocator of a process had of one device, in bytes.
type Device struct {
	File, Rank  string
	Number      int32
	First, Last trace.Time // bounds of its entries; 0 if unknown
	// Allocated was asked for and is in use, Pending was given back but a stream may still use it, and
	// Taken is the size of the blocks of both. Reserved is what the allocator has from the device.
	Allocated, Pending, Taken, Reserved int64
	// Free is the unused part of Reserved, LargestFree the largest block of that, and Pool what is
	// kept for CUDA graphs and memory pools.
	Free, LargestFree, Pool int64
	Told                    bool // there are entries, which all further fields need
	Replay                  recorder.Replay
	PeakTime                trace.Time
	Entries                 int64
	Failed                  int64 // allocations for which the device had no memory
	// Taking is the number of calls that took memory from the device, as a process does at its
	// start, and Took is an upper bound of their duration, ns.
	Taking, Took int64
}

// A Holder is what one place in the code had allocated at some moment.
type Holder struct {
	Rank    string
	Number  int32
	Peak    bool // at the peak; otherwise at the end
	Holding recorder.Holding
	Of      int64 // all bytes allocated at that moment
}

// A Stall is a call for more memory of the device.
type Stall struct {
	Rank   string
	Number int32
	Time   trace.Time // after the call
	Bytes  int64
	Most   int64     // upper bound of its duration: time since the previous entry, ns; -1 if unknown
	Where  trace.Sym // 0 if unknown
	// Took is how long the call took in a profiler's recording of the same rank, ns; -1 if not recorded there.
	Took int64
	Call trace.Sym
}

// Measure evaluates snapshots. profiles are recordings of the same processes; nil if there are none.
func Measure(set *recorder.Memory, profiles *profile.Set) *Memory {
	m := &Memory{syms: set.Syms}
	for _, x := range set.Snapshots() {
		for _, d := range x.Devices {
			m.device(x, d)
		}
	}
	if profiles != nil {
		m.confirm(profiles)
	}
	slices.SortStableFunc(m.Holders, func(a, b Holder) int { return cmp.Compare(b.Holding.Bytes, a.Holding.Bytes) })
	slices.SortStableFunc(m.Stalls, func(a, b Stall) int { return cmp.Or(cmp.Compare(b.Most, a.Most), cmp.Compare(a.Time, b.Time)) })
	return m
}

// device adds a device.
func (m *Memory) device(x *recorder.Snapshot, d *recorder.Device) {
	rank := cmp.Or(x.Rank, x.File)
	row := Device{File: x.File, Rank: rank, Number: d.Number, Entries: int64(len(d.Entries)), Told: len(d.Entries) > 0}
	row.Allocated, row.Pending, row.Reserved = d.Now()
	for i := range d.Segments {
		s := &d.Segments[i]
		if s.Pool {
			row.Pool += s.Size
		}
		for _, b := range s.Blocks {
			if b.State != recorder.Inactive {
				row.Taken += b.Size
			} else {
				row.Free += b.Size
				row.LargestFree = max(row.LargestFree, b.Size)
			}
		}
	}
	if row.Told {
		row.Replay = d.Replay()
		row.First, row.Last = d.Entries[0].Time, d.Entries[len(d.Entries)-1].Time
		row.PeakTime = row.First
		if row.Replay.PeakAt >= 0 {
			row.PeakTime = d.Entries[row.Replay.PeakAt].Time
		}
		m.holders(rank, d, &row.Replay, true)
		m.stalls(rank, d, &row)
		if g := grows(d, &row.Replay, x.Native); g != nil {
			g.Rank, g.Number = rank, d.Number
			m.Growing = append(m.Growing, *g)
		}
	} else {
		row.Replay.Start.Allocated, row.Replay.PeakAt = row.Allocated+row.Pending, -1
	}
	m.holders(rank, d, &row.Replay, false)
	m.Devices = append(m.Devices, row)
}

// holders adds what places had allocated, the largest first.
func (m *Memory) holders(rank string, d *recorder.Device, r *recorder.Replay, peak bool) {
	at, all := len(d.Entries)-1, r.End.Allocated
	if peak {
		at, all = r.PeakAt, r.Peak.Allocated
	} else if len(d.Entries) == 0 {
		all = r.Start.Allocated
	}
	list := d.Holdings(r, at)
	slices.SortFunc(list, func(a, b recorder.Holding) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(m.syms.Name(a.Where), m.syms.Name(b.Where)), cmp.Compare(b.N, a.N))
	})
	for _, h := range list {
		m.Holders = append(m.Holders, Holder{Rank: rank, Number: d.Number, Peak: peak, Holding: h, Of: all})
	}
}

// stalls adds the calls for more memory of the device, and those that failed.
func (m *Memory) stalls(rank string, d *recorder.Device, row *Device) {
	var failed []int
	for i := range d.Entries {
		e := &d.Entries[i]
		switch e.Action {
		case recorder.OutOfMemory:
			row.Failed++
			failed = append(failed, i)
		case recorder.SegmentAlloc, recorder.SegmentMap:
			s := Stall{Rank: rank, Number: d.Number, Time: e.Time, Bytes: e.Size, Where: e.Where, Most: -1, Took: -1}
			if i > 0 && e.Time != 0 && d.Entries[i-1].Time != 0 {
				s.Most = max(0, int64(e.Time-d.Entries[i-1].Time))
			}
			m.Stalls = append(m.Stalls, s)
			row.Taking, row.Took = row.Taking+1, row.Took+max(0, s.Most)
		}
	}
	for k, use := range d.At(row.Replay.Start, failed) {
		e := &d.Entries[failed[k]]
		m.Failed = append(m.Failed, Failure{Rank: rank, Number: d.Number, Time: e.Time, Asked: e.Size, Left: int64(min(e.Address, math.MaxInt64)), Where: e.Where, Use: use})
	}
}

// isMalloc reports whether a call gets memory from a device.
func isMalloc(name string) bool {
	return name == "cudaMalloc" || name == "hipMalloc" || name == "cuMemCreate" || name == "cuMemMap" || name == "hipMemCreate" || strings.HasPrefix(name, "cudaMalloc_")
}

// stampedBehind is how long after the end of a call its entry may be stamped, in ns: the
// allocator stamps it when it has recorded the segment.
const stampedBehind = 1_000_000

// confirm finds the calls in a profiler's recording of the same rank: the last one that ended
// before the stamp of the entry, and after the previous entry.
func (m *Memory) confirm(set *profile.Set) {
	type call struct {
		event profile.Event
	}
	calls := map[string][]call{} // by rank, and sorted by end below
	for _, st := range set.Streams {
		st.Calls(func(c *profile.Call) bool {
			if c.Rank >= 0 && isMalloc(set.Syms.Name(c.Name)) {
				calls[set.Ranks[c.Rank]] = append(calls[set.Ranks[c.Rank]], call{c.Event})
			}
			return true
		})
	}
	for _, list := range calls {
		slices.SortFunc(list, func(a, b call) int { return cmp.Compare(a.event.End, b.event.End) })
	}
	for i := range m.Stalls {
		s := &m.Stalls[i]
		list := calls[s.Rank]
		n := sort.Search(len(list), func(k int) bool { return list[k].event.End > s.Time+1000 }) // stamps are in whole microseconds
		if n == 0 || s.Most < 0 {
			continue
		}
		if c := list[n-1]; s.Time-c.event.End < stampedBehind && c.event.End >= s.Time-trace.Time(s.Most) && c.event.Dur() <= s.Most+1000 {
			s.Took, s.Call = c.event.Dur(), c.event.Name
		}
	}
}
