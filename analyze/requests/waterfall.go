package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Waterfall is one request, stage by stage on every rank.
type Waterfall struct {
	Request    *request.Request
	Lanes      []Lane             // router, prefill, sender, decode; sorted by start within each
	From, To   trace.Time         // of everything shown
	Holes      []request.Interval // times of the request that no stage covers
	ClockNotes []string           // why positions on different hosts may not be comparable

	set *request.Set
}

// A Lane is the stages of a request on one thread.
type Lane struct {
	Part   int // index into Set.Parts; None for the gateway
	Proc   int // index into Set.Procs; None is unknown
	Host   string
	Name   string // label and rank
	Reason string // why it was aborted; "" if it was not
	Rows   []Row
	Events []EventCount // sorted by name
	Tokens *Tokens      // nil if it produced fewer than two tokens
}

// An EventCount is the number of events with one name.
type EventCount struct {
	Name string
	N    int
}

// A Row is one stage, or several with the same name under one parent.
type Row struct {
	Name  string
	Depth int
	Phase request.Phase
	Spans []request.Interval
	Steps distribution.Summary // durations of the spans
}

// foldFrom is the number of spans with one name from which they are one row. Fewer are easier to read one by one.
const foldFrom = 4

// NewWaterfall makes the waterfall of request r, an index into s.Requests.
func NewWaterfall(s *request.Set, r int) *Waterfall {
	req := &s.Requests[r]
	w := &Waterfall{Request: req, From: req.Start, To: req.End, set: s}
	if lane, ok := gatewayLane(s, req); ok {
		w.addLane(lane)
	}
	for _, p := range s.PartsOf(req) {
		part := &s.Parts[p]
		for _, t := range s.ThreadsOf(part) {
			if lane, ok := threadLane(s, t); ok {
				w.addLane(lane)
			}
		}
		if len(s.ThreadsOf(part)) == 0 && part.Root != request.None && s.Kind(part.Root) == request.Root {
			lane := newLane(s, part.Proc)
			lane.Part, lane.Rows = p, []Row{newRow(s, 0, []uint32{uint32(part.Root)})}
			w.addLane(lane)
		}
	}
	w.Holes = holes(s, req)
	w.ClockNotes = clockNotes(s, req)
	return w
}

// gatewayLane makes the lane of the gateway's spans around r, outermost first.
func gatewayLane(s *request.Set, r *request.Request) (lane Lane, ok bool) {
	for i, depth := range s.GatewayRows(r) {
		if !ok {
			lane, ok = newLane(s, s.ProcOf(i)), true
			lane.Part = request.None
		}
		lane.Rows = append(lane.Rows, newRow(s, depth, []uint32{uint32(i)}))
		lane.Events = countEvents(s, lane.Events, i)
	}
	return lane, ok
}

// threadLane makes the lane of thread t. ok is false if nothing in it is selected.
func threadLane(s *request.Set, t int) (lane Lane, ok bool) {
	th := &s.Threads[t]
	lane = newLane(s, th.Proc)
	lane.Part, lane.Reason = th.Part, s.ReasonOf(t)
	lane.Rows = appendRows(nil, s, s.StagesOf(t), 0)
	if len(lane.Rows) == 0 && (th.Row == request.None || s.Kind(th.Row) != request.ThreadRow) {
		return lane, false
	}
	lane.Tokens = measureTokens(s, t)
	for i := range s.ThreadRows(t) {
		lane.Events = countEvents(s, lane.Events, i)
	}
	return lane, true
}

// newLane makes an empty lane named after its proc.
func newLane(s *request.Set, proc int) Lane {
	if proc == request.None {
		return Lane{Proc: proc, Host: "?", Name: "?"}
	}
	return Lane{Proc: proc, Host: s.ServerOf(proc), Name: s.ProcName(proc)}
}

func (w *Waterfall) addLane(l Lane) {
	for _, row := range l.Rows {
		for _, iv := range row.Spans {
			w.From, w.To = min(w.From, iv.From), max(w.To, iv.To)
		}
	}
	w.Lanes = append(w.Lanes, l)
}

// appendRows appends rows for siblings, sorted by start, and for their descendants. Siblings with the same name are
// folded into one row if there are many, and so are all of their descendants.
func appendRows(out []Row, s *request.Set, siblings []uint32, depth int) []Row {
	siblings = selected(s, nil, siblings)
	byName := map[trace.Sym][]uint32{}
	for _, i := range siblings {
		name := s.Row(int(i)).Name
		byName[name] = append(byName[name], i)
	}
	for _, i := range siblings {
		same := byName[s.Row(int(i)).Name]
		switch {
		case len(same) < foldFrom:
			same = []uint32{i}
		case same[0] != i:
			continue // shown with the first
		}
		var below []uint32
		for _, i := range same {
			below = append(below, s.Tree.Children(int(i))...)
		}
		out = append(out, newRow(s, depth, same))
		out = appendRows(out, s, below, depth+1)
	}
	return out
}

// selected appends the stages among siblings to out. A span that is not selected is replaced by its children.
func selected(s *request.Set, out, siblings []uint32) []uint32 {
	for _, i := range siblings {
		if s.Kind(int(i)) == request.Stage {
			out = append(out, i)
		} else {
			out = selected(s, out, s.Tree.Children(int(i)))
		}
	}
	return out
}

func newRow(s *request.Set, depth int, spans []uint32) Row {
	row := Row{Name: s.Name(int(spans[0])), Depth: depth, Phase: s.Row(int(spans[0])).Phase}
	durations := make([]int64, len(spans))
	for k, i := range spans {
		span := s.Row(int(i))
		row.Spans = append(row.Spans, request.Interval{From: span.Start, To: max(span.Start, span.End)})
		durations[k] = max(0, span.Dur())
	}
	row.Steps = distribution.Summarize(durations)
	return row
}

// countEvents adds the events of span i.
func countEvents(s *request.Set, counts []EventCount, i int) []EventCount {
	for _, e := range s.InstantsOf(i) {
		name := s.Syms.Name(e.Name)
		at, ok := slices.BinarySearchFunc(counts, name, func(c EventCount, name string) int { return strings.Compare(c.Name, name) })
		if !ok {
			counts = slices.Insert(counts, at, EventCount{Name: name})
		}
		counts[at].N++
	}
	return counts
}

// holes returns the times that the metrics of r count as unaccounted.
func holes(s *request.Set, r *request.Request) []request.Interval {
	if r.Metrics.Unaccounted == request.Unknown {
		return nil
	}
	var stages, holes []request.Interval
	for _, p := range s.PartsOf(r) {
		for _, t := range s.ThreadsOf(&s.Parts[p]) {
			for _, i := range s.StagesOf(t) {
				span := s.Row(int(i))
				stages = append(stages, request.Interval{From: span.Start, To: span.End})
			}
		}
	}
	slices.SortFunc(stages, func(x, y request.Interval) int { return cmp.Compare(x.From, y.From) })
	at := r.Start
	for _, iv := range append(stages, request.Interval{From: r.End, To: r.End}) {
		if from := min(iv.From, r.End); from > at {
			holes = append(holes, request.Interval{From: at, To: from})
		}
		at = max(at, iv.To)
	}
	return holes
}

// clockNotes says where a span extends beyond the span that caused it on another host. That is impossible, so the
// clocks of the two hosts differ.
func clockNotes(s *request.Set, r *request.Request) []string {
	var notes []string
	note := func(format string, args ...any) {
		notes = order.With(notes, fmt.Sprintf(format, args...))
	}
	host := func(proc int) string {
		if proc == request.None {
			return "?"
		}
		return s.HostOf(proc)
	}
	for _, i := range s.PartsOf(r) {
		p := &s.Parts[i]
		if p.Root == request.None {
			continue
		}
		if p.Gateway != request.None {
			g := s.Row(p.Gateway)
			if d := int64(g.Start - p.Start); d > request.ClockSlack {
				note("the %s part on host %s begins %s before the gateway's span around it", p.Role, host(p.Proc), words.Nearly(d))
			}
			if d := int64(p.End - g.End); d > request.ClockSlack {
				note("the %s part on host %s ends %s after the gateway's span around it", p.Role, host(p.Proc), words.Nearly(d))
			}
		}
		for _, t := range s.ThreadsOf(p) {
			th := &s.Threads[t]
			if th.Row == request.None || host(th.Proc) == host(p.Proc) {
				continue
			}
			if d := int64(p.Start - s.Row(th.Row).Start); d > request.ClockSlack {
				note("%s on host %s begins %s before its request on host %s", s.Procs[th.Proc].Label, host(th.Proc), words.Nearly(d), host(p.Proc))
			}
		}
	}
	return notes
}

// A shownSpan is a stage with its request and lane.
type shownSpan struct {
	of   *Waterfall
	lane *Lane
	row  *Row
	from trace.Time
	dur  int64
}

// spans lists the stages of the waterfall, folded ones separately.
func (w *Waterfall) spans() (spans []shownSpan) {
	for i := range w.Lanes {
		for k := range w.Lanes[i].Rows {
			row := &w.Lanes[i].Rows[k]
			for _, iv := range row.Spans {
				spans = append(spans, shownSpan{w, &w.Lanes[i], row, iv.From, int64(iv.To - iv.From)})
			}
		}
	}
	return spans
}

// WaterfallTable lists the stages of waterfalls, for programs.
func WaterfallTable(list []*Waterfall) *table.Table {
	var spans []shownSpan
	for _, w := range list {
		spans = append(spans, w.spans()...)
	}
	title := words.Counted(len(list), "request")
	if len(list) == 1 {
		title = "Request " + list[0].set.Text(list[0].Request.RID)
	}
	return table.New("sgtrace.request/v1", title, spans, []table.Field[shownSpan]{
		table.TextColumn("role", "role of the server", func(s *shownSpan) string { return s.of.role(s.lane) }),
		table.TextColumn("host", "short name of the host", func(s *shownSpan) string { return s.lane.Host }),
		table.TextColumn("rank", "thread label and rank", func(s *shownSpan) string { return s.lane.Name }),
		table.TextColumn("stage", "name of the stage", func(s *shownSpan) string { return s.row.Name }),
		table.CountColumn("depth", "nesting depth: number of enclosing stages", func(s *shownSpan) int64 { return int64(s.row.Depth) }),
		table.TimeColumn("time", "start of the stage, Unix time", func(s *shownSpan) trace.Time { return s.from }),
		table.TookColumn("offset", "start relative to the request; negative if clocks differ", func(s *shownSpan) int64 { return int64(s.from - s.of.Request.Start) }),
		table.TookColumn("duration", "duration", func(s *shownSpan) int64 { return s.dur }),
		table.TextColumn("rid", "id of the request", func(s *shownSpan) string { return s.of.set.Text(s.of.Request.RID) }).DetailIf(len(list) == 1),
	})
}

// role names the role of a lane.
func (w *Waterfall) role(l *Lane) string {
	if l.Part == request.None {
		return request.Router.String()
	}
	return w.set.Parts[l.Part].Role.String()
}
