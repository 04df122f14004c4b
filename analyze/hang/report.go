package hang

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// Report makes the tables.
func (h *Hang) Report() *document.Document {
	return document.Of(h.stuckTable(), h.rankTable(), h.lastTable(), h.stackTable())
}

func (h *Hang) stuckTable() *table.Table {
	list := func(name, doc string, of func(*Stuck) []int32) table.Field[Stuck] {
		return table.TextColumn(name, doc, func(s *Stuck) string { return ranges(of(s), 0, "-") })
	}
	t := table.New("sgtrace.report.hang/v1", "What does not end", h.Stuck, []table.Field[Stuck]{
		table.TextColumn("why", "why it does not end: `not entered`, `another operation`, `another size`, `another type`, `another order`, `sizes do not add up`, `no counterpart`, `deadlock`, `no dump` (nothing is known about some ranks), `others unknown` (all known ranks are in it, but there may be more), `all entered`, `behind another` (the awaited rank waits in another operation)", func(s *Stuck) string { return s.Kind.String() }),
		table.TextColumn("group", "process group: its description or name", func(s *Stuck) string { return s.Group }),
		list("of", "ranks of the group", func(s *Stuck) []int32 { return s.Of }),
		table.TextColumn("op", "operation that does not end", func(s *Stuck) string { return s.Op }),
		{Column: table.Column{Name: "seq", Unit: table.Count, Doc: "sequence number of the collective in its group, from 1; empty for a send or a receive"},
			Cell: func(s *Stuck) table.Cell { return table.Cell{N: s.Seq, Unknown: s.Seq < 0} }},
		table.TextColumn("sizes", "input sizes", func(s *Stuck) string { return s.Sizes }),
		table.TextColumn("type", "data type of the elements", func(s *Stuck) string { return s.Type }),
		table.TimeField("since", "when the first waiting rank entered it", func(s *Stuck) (trace.Time, bool) { return s.Since, s.Since != 0 }),
		list("waiting", "ranks that wait in it", func(s *Stuck) []int32 { return s.Waiting }),
		list("absent", "ranks that did not enter it", func(s *Stuck) []int32 { return s.Absent }),
		list("differ", "ranks that entered something else instead", func(s *Stuck) []int32 { return s.Differ }),
		table.TextColumn("instead", "what the first of those ranks entered", h.instead),
		list("no_dump", "ranks of the group without a dump", func(s *Stuck) []int32 { return s.Silent }),
		list("ended", "ranks for which it ended", func(s *Stuck) []int32 { return s.Ended }),
		table.CountColumn("held_up", "number of ranks that wait for it, directly or through other ranks; 0 unless it is a cause", func(s *Stuck) int64 { return int64(len(s.HeldUp)) }),
		table.CountColumn("queued", "most operations that any rank has in flight behind it", func(s *Stuck) int64 { return int64(s.Queued) }),
		table.TextColumn("at", "where the first waiting rank entered it: innermost function outside of PyTorch", func(s *Stuck) string { return h.place(s.Stack) }),
		table.TextColumn("stack", "stack of that rank, innermost frame first", func(s *Stuck) string { return h.whole(s.Stack) }).InDetail(),
	})
	if text := h.severalJobs(); text != "" {
		t.Note("%s", text)
	}
	if len(h.Silent) > 0 {
		t.Note("there is no record of what %s did", named(h.Silent))
	}
	if len(h.Stuck) == 0 && len(h.World) > len(h.Silent) {
		if n := h.unnamed(); n > 0 {
			t.Note("%s counted collectives that did not end, and nothing tells which: PyTorch's flight recorder does (nccl_trace_rank_*)", words.Counted(n, "rank"))
		} else if n := len(h.World) - len(h.Silent); h.by == recorder.NCCL {
			t.Note("NCCL's log tells what %s entered, and not what ended: all entered the same collectives", words.Counted(n, "rank"))
		} else {
			t.Note("nothing was in flight in %s", words.Counted(n, "rank"))
		}
	}
	if len(h.World) == 0 && len(h.standing) > 0 {
		t.Note("stacks say where threads stand, and not which collective does not end: PyTorch's flight recorder does (nccl_trace_rank_*), and so do logs with NCCL_DEBUG=INFO")
	}
	if slices.ContainsFunc(h.Stuck, func(s Stuck) bool { return s.Hearsay }) {
		t.Note("NCCL's log has no times, and may have been copied while ranks went on: alone, it proves no hang")
	}
	return t
}

// instead returns the collective that the first rank in Differ entered.
func (h *Hang) instead(s *Stuck) string {
	if len(s.Differ) == 0 {
		return ""
	}
	return words.JoinNonEmpty(" ", h.text(s.Other.Name), h.text(s.Other.In.Text), h.text(s.Other.InT))
}

// where says in a word where a rank is.
func (h *Hang) where(r *Rank) string {
	switch {
	case r.Dump == nil:
		return "no dump"
	case r.Stuck >= 0 && slices.Contains(h.Stuck[r.Stuck].Differ, r.Rank):
		return "entered another"
	case r.Stuck >= 0:
		return "waits"
	case r.Pending > 0, r.Unnamed > 0:
		return "in flight"
	}
	for i := range h.Stuck {
		if s := &h.Stuck[i]; s.Cause && slices.Contains(s.Absent, r.Rank) {
			return "did not enter"
		}
	}
	if r.Dump.By == recorder.NCCL {
		return "as far as the others"
	}
	return "nothing in flight"
}

func (h *Hang) rankTable() *table.Table {
	op := func(of func(*Rank) *recorder.Op, text func(*recorder.Op) string) func(*Rank) string {
		return func(r *Rank) string {
			if o := of(r); o != nil {
				return text(o)
			}
			return ""
		}
	}
	name := func(o *recorder.Op) string { return h.text(o.Name) }
	head, last := func(r *Rank) *recorder.Op { return r.Head }, func(r *Rank) *recorder.Op { return r.Last }
	dump := func(r *Rank) *recorder.FlightDump {
		if r.Dump == nil {
			return &recorder.FlightDump{}
		}
		return r.Dump
	}
	return table.New("sgtrace.report.hang.ranks/v1", "Ranks", h.Ranks, []table.Field[Rank]{
		table.CountColumn("rank", "global rank in the job", func(r *Rank) int64 { return int64(r.Rank) }),
		table.TextColumn("state", "`waits` (in a collective), `entered another` (than most ranks), `did not enter` (what others wait in), `no dump`, `in flight` (in an operation that is not compared), `nothing in flight`, or, from NCCL's log, which does not say what ended, `as far as the others`", h.where),
		table.TextColumn("op", "first operation that it has in flight", op(head, name)),
		table.TextColumn("group", "process group of that operation", (*Rank).group),
		{Column: table.Column{Name: "seq", Unit: table.Count, Doc: "sequence number of that operation in its group; empty for a send or a receive"},
			Cell: func(r *Rank) table.Cell {
				if r.Head == nil || r.Head.IsP2P() {
					return table.Cell{Unknown: true}
				}
				return table.Cell{N: r.Head.Seq}
			}},
		table.TimeField("since", "when the rank entered it", func(r *Rank) (trace.Time, bool) {
			if r.Head == nil || r.Head.Created == 0 {
				return 0, false
			}
			return r.Head.Created, true
		}),
		table.CountColumn("pending", "number of operations in flight", func(r *Rank) int64 { return int64(r.Pending) }),
		table.TextColumn("last", "last operation that it entered, if its dump has any", op(last, name)),
		table.TextColumn("at", "where it entered the first operation in flight, else the last one", func(r *Rank) string {
			o := cmp.Or(r.Head, r.Last)
			if o == nil || o.Stack < 0 {
				return ""
			}
			return h.place(r.Dump.Stacks[o.Stack])
		}),
		table.TextColumn("file", "file of the dump", func(r *Rank) string { return dump(r).File }),
	})
}

// A reached is how far a process got in a group.
type reached struct {
	dump  *recorder.FlightDump
	group *recorder.Group
	last  *recorder.Op // that it entered; nil is unknown
}

// reachedAll returns the groups of all processes, without those that no line or entry is about.
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

// end returns how a process left a group.
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
		number("rank", "global rank in the job", func(x *reached) int64 { return int64(x.dump.Rank) }),
		table.TextColumn("by", "source: `PyTorch flight recorder`, `PyTorch watchdog`, `NCCL log`, or `NCCL Inspector` (last collective that ended)", func(x *reached) string { return x.dump.By.String() }),
		table.TextColumn("group", "process group or NCCL communicator", func(x *reached) string {
			return (&group{name: x.group.Name, desc: x.group.Desc}).title()
		}),
		number("member", "rank within the group, if known", func(x *reached) int64 { return int64(x.group.Member) }),
		number("size", "size of the group, if known", func(x *reached) int64 {
			if n := len(x.group.Ranks); n > 0 {
				return int64(n)
			}
			return int64(x.group.Size)
		}),
		number("entered", "sequence number of the last collective that it entered; from NCCL's log, the number of collectives", func(x *reached) int64 {
			if x.dump.By == recorder.Inspector {
				return recorder.Unknown
			}
			if x.last != nil {
				return max(x.group.Enqueued, x.last.Seq)
			}
			return x.group.Enqueued
		}),
		number("completed", "sequence number of the last collective known to have ended; from NCCL Inspector, counted per kind", func(x *reached) int64 {
			if x.dump.By == recorder.Inspector {
				return x.last.Seq
			}
			return x.group.Completed
		}),
		table.TextColumn("op", "last collective with details", text(func(o *recorder.Op) string { return h.text(o.Name) })),
		table.TextColumn("sizes", "input sizes", text(func(o *recorder.Op) string { return h.text(o.In.Text) })),
		table.TextColumn("type", "data type of the elements", text(func(o *recorder.Op) string { return h.text(o.InT) })),
		table.TextColumn("end", "`destroyed` if the communicator was shut down in good order, or `aborted`", (*reached).end),
		table.TextColumn("file", "file that says so", func(x *reached) string { return x.dump.File }),
	})
}
