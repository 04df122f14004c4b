package hang

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// A reached is how far a process is in a group.
type reached struct {
	dump  *recorder.FlightDump
	group *recorder.Group
	last  *recorder.Op // that it entered; nil is unknown
}

// reachedAll returns all groups of all processes, but those that no line or entry is about.
func (h *Hang) reachedAll() (list []reached) {
	for _, d := range h.Set.Dumps {
		first := len(list)
		for i := range d.Groups {
			list = append(list, reached{dump: d, group: &d.Groups[i]})
		}
		for i := range d.Ops {
			list[first+int(d.Ops[i].Group)].last = &d.Ops[i]
		}
	}
	kept := list[:0]
	for _, x := range list {
		if x.last != nil || x.group.Enqueued >= 0 || x.dump.By == recorder.NCCL {
			kept = append(kept, x)
		}
	}
	return kept
}

// end returns how a process gave up a group.
func (x *reached) end() string {
	switch {
	case x.group.Aborted:
		return "aborted"
	case x.group.Ended:
		return "destroyed"
	}
	return ""
}

// lastTable returns the last collective by rank and group.
func (h *Hang) lastTable() *table.Table {
	number := func(name, doc string, of func(*reached) int64) table.Field[reached] {
		return table.Field[reached]{Column: table.Column{Name: name, Unit: table.Count, Doc: doc}, Cell: func(x *reached) table.Cell {
			n := of(x)
			return table.Cell{N: n, Unknown: n < 0}
		}}
	}
	text := func(of func(*recorder.Op) string) func(*reached) string {
		return func(x *reached) string {
			if x.last == nil {
				return ""
			}
			return of(x.last)
		}
	}
	return table.New("sgtrace.report.hang.last/v1", "The last collective by rank and group", h.reachedAll(), []table.Field[reached]{
		number("rank", "number of the rank in the job", func(x *reached) int64 { return int64(x.dump.Rank) }),
		table.TextColumn("by", "who says it: `PyTorch flight recorder`, `PyTorch watchdog`, `NCCL log`, or `NCCL Inspector`, which tells the last one that ended", func(x *reached) string { return x.dump.By.String() }),
		table.TextColumn("group", "the process group, or NCCL's communicator", func(x *reached) string {
			return (&group{name: x.group.Name, desc: x.group.Desc}).title()
		}),
		number("member", "which rank of the group it is, if that is told", func(x *reached) int64 { return int64(x.group.Member) }),
		number("size", "ranks of the group, if that is told", func(x *reached) int64 {
			if n := len(x.group.Ranks); n > 0 {
				return int64(n)
			}
			return int64(x.group.Size)
		}),
		number("entered", "the number of the last collective that it entered; of NCCL's log, how many", func(x *reached) int64 {
			if x.dump.By == recorder.Inspector {
				return recorder.Unknown
			}
			if x.last != nil {
				return max(x.group.Enqueued, x.last.Seq)
			}
			return x.group.Enqueued
		}),
		number("completed", "the number of the last one that it knows has ended; of NCCL Inspector, among those of its kind", func(x *reached) int64 {
			if x.dump.By == recorder.Inspector {
				return x.last.Seq
			}
			return x.group.Completed
		}),
		table.TextColumn("op", "the last one of which more is told", text(func(o *recorder.Op) string { return h.text(o.Name) })),
		table.TextColumn("sizes", "sizes of what goes in", text(func(o *recorder.Op) string { return h.text(o.In.Text) })),
		table.TextColumn("type", "type of its elements", text(func(o *recorder.Op) string { return h.text(o.InT) })),
		table.TextColumn("end", "`destroyed` if it gave the communicator up in good order, or `aborted`", (*reached).end),
		table.TextColumn("file", "where that stands", func(x *reached) string { return x.dump.File }),
	})
}
