package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A standing is a stack, and the threads that stand there.
type standing struct {
	name, state string
	titles      []string
	ranks       []int32
	processes   int
	stack       []recorder.Frame
	at          trace.Time // when the first was looked at; 0 is unknown
	main        bool
}

// listStacks finds the rank of each process that py-spy looked at, and merges equal stacks.
func (h *Hang) listStacks() {
	h.python = map[int32]*recorder.FlightDump{}
	by := map[string]int{}
	for _, d := range h.Set.Dumps {
		if d.By != recorder.PySpy {
			continue
		}
		rank := h.rankOf(d)
		if o := h.python[rank]; rank >= 0 && (o == nil || d.Time >= o.Time) {
			h.python[rank] = d
		}
		for i := range d.Threads {
			t := &d.Threads[i]
			if t.Stack < 0 {
				continue
			}
			h.stand(by, d, t, rank, i == 0)
		}
	}
	slices.SortStableFunc(h.standing, func(a, b standing) int {
		return cmp.Or(order.Bool(b.main, a.main), cmp.Compare(b.processes, a.processes), strings.Compare(a.name, b.name))
	})
}

// stand adds a thread to the threads with its stack.
func (h *Hang) stand(by map[string]int, d *recorder.FlightDump, t *recorder.Thread, rank int32, main bool) {
	stack := d.Stacks[t.Stack]
	key := t.Name + "\x00" + h.whole(stack)
	i := order.At(by, &h.standing, key, func() standing { return standing{name: t.Name, state: t.State, stack: stack, at: d.Time, main: main} })
	s := &h.standing[i]
	s.processes++
	if s.state != t.State {
		s.state = ""
	}
	if d.Time != 0 && (s.at == 0 || d.Time < s.at) {
		s.at = d.Time
	}
	if rank >= 0 && !slices.Contains(s.ranks, rank) {
		s.ranks = append(s.ranks, rank)
		slices.Sort(s.ranks)
	}
	if d.Title != "" && !slices.Contains(s.titles, d.Title) {
		s.titles = append(s.titles, d.Title)
		slices.Sort(s.titles)
	}
}

// rankOf returns the rank of a process in the job: as another dump of the process has it, or by its
// title if no other process has that. It is recorder.Unknown otherwise.
func (h *Hang) rankOf(d *recorder.FlightDump) int32 {
	if d.Rank >= 0 {
		return d.Rank
	}
	var size int32
	alike := 0
	for _, o := range h.Set.Dumps {
		if o.By != recorder.PySpy && o.Rank >= 0 && o.PID != 0 && o.PID == d.PID && o.Host == d.Host {
			return o.Rank
		}
		if o.By == recorder.PySpy {
			size = max(size, int32(o.Of.TP)+1)
			if o.Of.TP == d.Of.TP && o.Of.PP == d.Of.PP && (o.PID != d.PID || o.Of != d.Of) {
				alike++
			}
		}
	}
	if d.Of.TP < 0 || alike > 0 {
		return recorder.Unknown
	}
	return int32(max(d.Of.PP, 0))*size + int32(d.Of.TP)
}

// pythonOf says where the main thread of a rank stands; "" if nobody looked.
func (h *Hang) pythonOf(rank int32) string {
	d := h.python[rank]
	if d == nil || d.Threads[0].Stack < 0 {
		return ""
	}
	stack := d.Stacks[d.Threads[0].Stack]
	text := h.frame(stack[0])
	if at := h.place(stack); at != text {
		text += ", called from " + at
	}
	return text
}

// sayPython says where Python stands on ranks. Ranks in the same place share a sentence.
func (h *Hang) sayPython(ranks []int32, say func(string, ...any)) {
	const most = 3
	var by order.Groups[string, []int32]
	for _, r := range ranks {
		if at := h.pythonOf(r); at != "" {
			order.Add(&by, at, r)
		}
	}
	for i, at := range by.Keys {
		if i == most {
			say("Python stands in %s more in other ranks", words.Counted(len(by.Keys)-most, "place"))
			return
		}
		say("Python of %s stands in %s, as py-spy saw it", named(by.List[i]), at)
	}
}

// stackTable returns where threads stand.
func (h *Hang) stackTable() *table.Table {
	return table.New("sgtrace.report.hang.stacks/v1", "Where threads stand", h.standing, []table.Field[standing]{
		table.TextColumn("ranks", "global ranks, if process titles or other inputs give them", func(s *standing) string { return ranges(s.ranks, 0, "-") }),
		table.CountColumn("processes", "number of processes with a thread in this stack", func(s *standing) int64 { return int64(s.processes) }),
		table.TextColumn("title", "process title; if several, the first and the number of others", func(s *standing) string {
			switch len(s.titles) {
			case 0:
				return ""
			case 1:
				return s.titles[0]
			}
			return fmt.Sprintf("%s and %d more", s.titles[0], len(s.titles)-1)
		}),
		table.TextColumn("thread", "name of the thread", func(s *standing) string { return s.name }),
		table.TextColumn("state", "`idle`, `active`, or `active+gil`, as py-spy reports it; empty if the threads differ. A thread that waits for a device is often `active`", func(s *standing) string { return s.state }),
		table.TimeField("time", "when the first of them was sampled, if the log says", func(s *standing) (trace.Time, bool) { return s.at, s.at != 0 }),
		table.TextColumn("in", "innermost function", func(s *standing) string { return h.frame(s.stack[0]) }),
		table.TextColumn("at", "innermost function outside of PyTorch and libraries", func(s *standing) string { return h.place(s.stack) }),
		table.TextColumn("stack", "stack, innermost frame first", func(s *standing) string { return h.whole(s.stack) }).InDetail(),
	})
}
