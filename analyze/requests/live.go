package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Live is a request in progress at a moment, with its stage.
type Live struct {
	Request *request.Request
	Age     int64 // ns since the request began
	// Stage is the row of its current stage, or None if no stage was open or recorded. Of several, it is the most
	// productive one: computing before a transfer before waiting, and the latest of equal ones.
	Stage int
	In    int64 // ns since the stage began; Unknown without a stage
	// Proc is where the stage is or, without one, the proc that the request reached last; None is unknown.
	Proc int
}

// A Moment is all requests in progress at a time.
type Moment struct {
	At   trace.Time
	Live []Live // oldest first

	set *request.Set
}

// doing lists phases by how productive they are for a request, from least to most.
var doing = []request.Phase{
	request.OtherPhase, request.RoutePhase, request.DispatchPhase, request.BootstrapPhase, request.QueuePhase,
	request.TransferPhase, request.PrefillPhase, request.DecodePhase,
}

// At returns the requests in progress at a time. A request without an end is taken to continue.
func At(s *request.Set, at trace.Time) *Moment {
	m := &Moment{At: at, set: s}
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		if r.Start > at || r.End <= at && r.Status != request.Unfinished {
			continue
		}
		live := Live{Request: r, Age: int64(at - r.Start), Stage: stageAt(s, r, at), In: request.Unknown, Proc: procAt(s, r, at)}
		if live.Stage != request.None {
			live.In, live.Proc = int64(at-s.Row(live.Stage).Start), s.ProcOf(live.Stage)
		}
		m.Live = append(m.Live, live)
	}
	slices.SortStableFunc(m.Live, func(a, b Live) int { return cmp.Compare(b.Age, a.Age) })
	return m
}

// stageAt returns the current stage of a request; None if none is open.
func stageAt(s *request.Set, r *request.Request, at trace.Time) int {
	best := request.None
	for _, p := range s.PartsOf(r) {
		for _, t := range s.ThreadsOf(&s.Parts[p]) {
			for _, i := range s.StagesOf(t) {
				row := s.Row(int(i))
				if row.Start > at || row.End <= at || s.Kind(int(i)) != request.Stage {
					continue
				}
				if best == request.None || compareStages(row, s.Row(best)) > 0 {
					best = int(i)
				}
			}
		}
	}
	return best
}

// procAt returns the proc of the last thread of a request that began before a time; None if there is none.
func procAt(s *request.Set, r *request.Request, at trace.Time) int {
	proc, began := request.None, trace.Time(0)
	for _, p := range s.PartsOf(r) {
		for _, t := range s.ThreadsOf(&s.Parts[p]) {
			if th := &s.Threads[t]; th.Start <= at && (proc == request.None || th.Start > began) {
				proc, began = th.Proc, th.Start
			}
		}
	}
	return proc
}

// compareStages orders stages by how productive their phases are, then by start.
func compareStages(a, b *request.Row) int {
	return cmp.Or(cmp.Compare(slices.Index(doing, a.Phase), slices.Index(doing, b.Phase)), cmp.Compare(a.Start, b.Start))
}

// state returns the name of a request's current phase.
func (m *Moment) state(l *Live) string {
	if l.Stage == request.None {
		return ""
	}
	return m.set.Row(l.Stage).Phase.String()
}

// title counts the requests by phase, the most advanced first.
func (m *Moment) title() string {
	var parts []string
	known := 0
	for _, phase := range slices.Backward(doing) {
		n := order.CountRows(m.Live, func(l *Live) bool { return m.state(l) == phase.String() })
		if known += n; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, phase))
		}
	}
	if rest := len(m.Live) - known; rest > 0 {
		parts = append(parts, fmt.Sprintf("%d in no recorded stage", rest))
	}
	return fmt.Sprintf("Requests under way at %s %s: %d%s", words.At(m.At, "2006-01-02 15:04:05.999"), words.ZoneAt(m.At), len(m.Live), words.Aside(strings.Join(parts, ", ")))
}

// Report makes the table of the requests in progress.
func (m *Moment) Report() *table.Table {
	type L = Live
	s := m.set
	stage := func(of func(row int) string) func(*L) string {
		return func(l *L) string {
			if l.Stage == request.None {
				return ""
			}
			return of(l.Stage)
		}
	}
	const scale = "age"
	age := func(name, doc string, of func(*L) int64) table.Field[L] {
		return table.NsColumn(name, doc, of).OnScale(scale)
	}
	t := table.New("sgtrace.live/v1", m.title(), m.Live, []table.Field[L]{
		table.TextColumn("rid", "the user's request ID if known, else the server's", func(l *L) string { return s.Text(l.Request.RID) }),
		table.TextColumn("state", "phase of the request: queue, bootstrap, prefill, transfer, decode, dispatch, route, other", m.state),
		table.TextColumn("stage", "name of the stage", stage(s.Name)),
		table.TextColumn("rank", "rank of the stage; among ranks that do the same work, the last to begin it", stage(func(i int) string { return s.RankName(s.ProcOf(i)) })),
		table.TextColumn("host", "host of the stage; without a stage, of the server that the request was last sent to", func(l *L) string {
			if l.Proc == request.None {
				return ""
			}
			return s.ServerOf(l.Proc)
		}),
		age("age", "time since the request began", func(l *L) int64 { return l.Age }),
		age("in stage", "time since the stage began", func(l *L) int64 { return l.In }),
		age("e2e", "end-to-end latency: length of the outermost span", func(l *L) int64 { return l.Request.Metrics.E2E }),
		table.TextColumn("status", "how the request ended", func(l *L) string { return l.Request.Status.String() }),
	}).Leave("stage", "e2e", "status")
	if len(m.Live) == 0 {
		first, last, _ := s.Bounds()
		t.Note("the requests %s", words.Were(first, last))
	}
	return t
}
