package allocations

import (
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Report returns the tables.
func (m *Memory) Report() *document.Document {
	d := document.Of(m.deviceTable(), m.holderTable(), m.stallTable())
	d.LimitAll = true
	return d
}

func bytesOf[T any](name, doc string, of func(*T) int64, known func(*T) bool) table.Field[T] {
	return table.Field[T]{Column: table.Column{Name: name, Unit: table.Bytes, Doc: doc}, Cell: func(x *T) table.Cell {
		return table.Cell{N: of(x), Unknown: known != nil && !known(x)}
	}}
}

func (m *Memory) deviceTable() *table.Table {
	told := func(d *Device) bool { return d.Told }
	when := func(of func(*Device) trace.Time) func(*Device) (trace.Time, bool) {
		return func(d *Device) (trace.Time, bool) { return of(d), of(d) != 0 }
	}
	t := table.New("sgtrace.report.memory/v1", "Memory that PyTorch has of devices", m.Devices, []table.Field[Device]{
		table.TextColumn("rank", "rank, or the file if no name gives the rank", func(d *Device) string { return d.Rank }),
		table.CountColumn("device", "device number within the process", func(d *Device) int64 { return int64(d.Number) }),
		bytesOf("allocated", "requested bytes in use when the snapshot was taken", func(d *Device) int64 { return d.Allocated }, nil),
		bytesOf("reserved", "device memory held by the allocator, in use or free", func(d *Device) int64 { return d.Reserved }, nil),
		bytesOf("peak", "peak of requested bytes in use since the first entry; empty if nothing was recorded", func(d *Device) int64 { return d.Replay.Peak.Allocated }, told),
		table.TimeField("peak_at", "time of the peak", when(func(d *Device) trace.Time { return d.PeakTime })),
		bytesOf("before", "in use before the first entry: weights and KV caches if recording began after loading", func(d *Device) int64 { return d.Replay.Start.Allocated }, told),
		bytesOf("grown", "allocated during the recording and still in use at the end", func(d *Device) int64 { return d.Replay.Grown }, told),
		bytesOf("free", "reserved but not in use", func(d *Device) int64 { return d.Free }, nil),
		bytesOf("largest_free", "largest free block: a larger allocation needs more device memory", func(d *Device) int64 { return d.LargestFree }, nil),
		bytesOf("rounding", "rounding overhead of the blocks in use", func(d *Device) int64 { return d.Taken - d.Allocated - d.Pending }, nil),
		bytesOf("pool", "reserved for CUDA graphs and memory pools", func(d *Device) int64 { return d.Pool }, nil),
		table.CountColumn("failed", "number of allocations that failed for lack of device memory", func(d *Device) int64 { return d.Failed }),
		table.CountColumn("entries", "number of entries that the allocator recorded before the snapshot", func(d *Device) int64 { return d.Entries }),
		table.TimeField("from", "time of the first entry", when(func(d *Device) trace.Time { return d.First })),
		table.TimeField("to", "time of the last entry", when(func(d *Device) trace.Time { return d.Last })),
		table.FileField(func(d *Device) string { return d.File }),
	})
	silent, odd, lost := 0, 0, int64(0)
	for i := range m.Devices {
		if d := &m.Devices[i]; !d.Told {
			silent++
		} else if d.Replay.End.Allocated != d.Allocated+d.Pending || d.Replay.Lost > 0 {
			odd++
			lost += d.Replay.Lost
		}
	}
	if silent > 0 {
		t.Note("nothing was recorded before the snapshot of %s: peak and growth are not known", words.Counted(silent, "device"))
	}
	if odd > 0 {
		t.Note("entries and blocks of %s do not add up: entries are missing, of blocks of %s at least", words.Counted(odd, "device"), words.Size(lost))
	}
	t.Note("memory that others have of a device is not in it: NCCL, NVSHMEM, custom all-reduce, contexts of the driver")
	return t
}

func (m *Memory) holderTable() *table.Table {
	return table.New("sgtrace.report.memory.stacks/v1", "Who has memory, at the peak and at the end", m.Holders, []table.Field[Holder]{
		table.TextColumn("rank", "rank, or the file if no name gives the rank", func(h *Holder) string { return h.Rank }),
		table.CountColumn("device", "device number within the process", func(h *Holder) int64 { return int64(h.Number) }),
		table.TextColumn("at", "moment: `peak` or `end`", func(h *Holder) string {
			if h.Peak {
				return "peak"
			}
			return "end"
		}),
		bytesOf("allocated", "requested bytes in use", func(h *Holder) int64 { return h.Holding.Bytes }, nil),
		table.PartColumn("share", "share of all memory in use at that moment", func(h *Holder) (int64, int64) { return h.Holding.Bytes, h.Of }),
		{Column: table.Column{Name: "n", Unit: table.Count, Doc: "number of blocks"}, Cell: func(h *Holder) table.Cell { return table.Cell{N: h.Holding.N, Unknown: h.Holding.N == 0} }},
		table.TextColumn("where", "innermost function outside of PyTorch that allocated it", m.holderName),
	})
}

// holderName names the place that has memory.
func (m *Memory) holderName(h *Holder) string {
	switch {
	case h.Holding.Where == 0 && h.Holding.Before:
		return "(allocated before recording)"
	case h.Holding.Where == 0:
		return "(no stack)"
	}
	return m.syms.Name(h.Holding.Where)
}

func (m *Memory) stallTable() *table.Table {
	none := func(n int64) table.Cell { return table.Cell{N: n, Unknown: n < 0} }
	t := table.New("sgtrace.report.memory.stalls/v1", "Calls for more memory of the device", m.Stalls, []table.Field[Stall]{
		table.TextColumn("rank", "rank, or the file if no name gives the rank", func(s *Stall) string { return s.Rank }),
		table.CountColumn("device", "device number within the process", func(s *Stall) int64 { return int64(s.Number) }),
		table.TimeField("time", "end of the call", func(s *Stall) (trace.Time, bool) { return s.Time, s.Time != 0 }),
		bytesOf("size", "size of the segment", func(s *Stall) int64 { return s.Bytes }, nil),
		{Column: table.Column{Name: "at_most", Unit: table.Duration, Doc: "upper bound of the call's duration: time since the previous entry"}, Cell: func(s *Stall) table.Cell { return none(s.Most) }},
		{Column: table.Column{Name: "took", Unit: table.Duration, Doc: "duration of the call, if a profile of the same rank recorded it"}, Cell: func(s *Stall) table.Cell { return none(s.Took) }},
		table.TextColumn("call", "name of the call", func(s *Stall) string { return m.syms.Name(s.Call) }),
		table.TextColumn("where", "innermost function outside of PyTorch", func(s *Stall) string { return m.syms.Name(s.Where) }),
	})
	if len(m.Stalls) > 0 {
		t.Note("at_most is the time since the allocator did anything else, which is no stall unless took says so")
	}
	return t
}
