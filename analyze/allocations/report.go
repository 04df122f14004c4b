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
		table.TextColumn("rank", "the rank, or the file where no name tells it", func(d *Device) string { return d.Rank }),
		table.CountColumn("device", "as the process counts", func(d *Device) int64 { return int64(d.Number) }),
		bytesOf("allocated", "in use when the snapshot was taken, as asked for", func(d *Device) int64 { return d.Allocated }, nil),
		bytesOf("reserved", "what the allocator has of the device: in use or not", func(d *Device) int64 { return d.Reserved }, nil),
		bytesOf("peak", "the most that was in use since the first entry", func(d *Device) int64 { return d.Replay.Peak.Allocated }, told),
		table.TimeField("peak_at", "when that was", when(func(d *Device) trace.Time { return d.PeakTime })),
		bytesOf("before", "was in use before the first entry: weights and KV caches, if recording began after loading", func(d *Device) int64 { return d.Replay.Start.Allocated }, told),
		bytesOf("grown", "was allocated by some entry and is in use at the end", func(d *Device) int64 { return d.Replay.Grown }, told),
		bytesOf("free", "reserved, and in no use", func(d *Device) int64 { return d.Free }, nil),
		bytesOf("largest_free", "the largest block of that: a larger allocation needs more of the device", func(d *Device) int64 { return d.LargestFree }, nil),
		bytesOf("rounding", "what blocks in use take beyond what was asked for", func(d *Device) int64 { return d.Taken - d.Allocated - d.Pending }, nil),
		bytesOf("pool", "kept for CUDA graphs and memory pools", func(d *Device) int64 { return d.Pool }, nil),
		table.CountColumn("failed", "allocations that the device had no memory for", func(d *Device) int64 { return d.Failed }),
		table.CountColumn("entries", "what the allocator recorded before the snapshot", func(d *Device) int64 { return d.Entries }),
		table.TimeField("from", "the first of them", when(func(d *Device) trace.Time { return d.First })),
		table.TimeField("to", "the last of them", when(func(d *Device) trace.Time { return d.Last })),
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
		table.TextColumn("rank", "the rank, or the file where no name tells it", func(h *Holder) string { return h.Rank }),
		table.CountColumn("device", "as the process counts", func(h *Holder) int64 { return int64(h.Number) }),
		table.TextColumn("at", "`peak` or `end`", func(h *Holder) string {
			if h.Peak {
				return "peak"
			}
			return "end"
		}),
		bytesOf("allocated", "in use, as asked for", func(h *Holder) int64 { return h.Holding.Bytes }, nil),
		table.PartColumn("share", "of all that was in use then", func(h *Holder) (int64, int64) { return h.Holding.Bytes, h.Of }),
		{Column: table.Column{Name: "n", Unit: table.Count, Doc: "blocks"}, Cell: func(h *Holder) table.Cell { return table.Cell{N: h.Holding.N, Unknown: h.Holding.N == 0} }},
		table.TextColumn("where", "the innermost function of the allocation that is not PyTorch's", m.holderName),
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
		table.TextColumn("rank", "the rank, or the file where no name tells it", func(s *Stall) string { return s.Rank }),
		table.CountColumn("device", "as the process counts", func(s *Stall) int64 { return int64(s.Number) }),
		table.TimeField("time", "behind the call", func(s *Stall) (trace.Time, bool) { return s.Time, s.Time != 0 }),
		bytesOf("size", "of the segment", func(s *Stall) int64 { return s.Bytes }, nil),
		{Column: table.Column{Name: "at_most", Unit: table.Duration, Doc: "time since the entry before: the call took no longer"}, Cell: func(s *Stall) table.Cell { return none(s.Most) }},
		{Column: table.Column{Name: "took", Unit: table.Duration, Doc: "duration of the call, where a profiler recorded it of the same rank"}, Cell: func(s *Stall) table.Cell { return none(s.Took) }},
		table.TextColumn("call", "that call", func(s *Stall) string { return m.syms.Name(s.Call) }),
		table.TextColumn("where", "the innermost function that is not PyTorch's", func(s *Stall) string { return m.syms.Name(s.Where) }),
	})
	if len(m.Stalls) > 0 {
		t.Note("at_most is the time since the allocator did anything else, which is no stall unless took says so")
	}
	return t
}
