package drawing

import (
	"cmp"
	"runtime/debug"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// findEdges collects the arrows between spans: the links that the producer recorded, gateway to server,
// prefill to decode, server to transfer worker, and calls between services.
func (l *layout) findEdges(b *trace.Builder) {
	add := func(from, to int, name trace.Sym) {
		if from != request.None && to != request.None && from != to && l.drawn(from) && l.drawn(to) {
			l.edges = memory.Append(l.edges, edge{int32(from), int32(to), name})
		}
	}
	next, call, route := b.Intern("next"), b.Intern("call"), b.Intern("route")
	links := l.set.Links
	l.edges = memory.Grow(l.edges, len(links))
	for i := range l.set.All() {
		for ; len(links) > 0 && int(links[0].To) == i; links = links[1:] {
			add(int(links[0].From), i, next)
		}
		if !l.drawn(i) {
			continue
		}
		p := l.set.Tree.Parent(i)
		switch {
		case p == request.None || l.set.ProcOf(p) == l.set.ProcOf(i):
		case l.set.Kind(i) == request.Generic:
			add(p, i, call)
		case l.set.Kind(i) == request.Root:
			add(p, i, route)
		}
	}
	transfer, send := b.Intern("kv transfer"), b.Intern("kv send")
	for r := range l.set.AllRequests() {
		l.handovers(&l.set.Requests[r], func(from, to int) { add(from, to, transfer) }, func(from, to int) { add(from, to, send) })
	}
}

// handovers finds where the KV cache moves from one thread to another: rank by rank from the prefill to the
// decode server, and from the scheduler that computed it to the transfer that it queued.
func (l *layout) handovers(r *request.Request, transfer, send func(from, to int)) {
	byRole := map[request.Role]*request.Part{}
	for _, p := range l.set.PartsOf(r) {
		part := &l.set.Parts[p]
		if part.Role == request.Sender {
			for _, t := range l.set.ThreadsOf(part) {
				if prefill := byRole[request.Prefill]; prefill != nil {
					send(l.stage(l.threadOn(prefill, l.set.Threads[t].Proc), request.Prefilling), l.stage(t, request.SendQueueing))
				}
			}
			continue
		}
		byRole[part.Role] = part
	}
	prefill, decode := byRole[request.Prefill], byRole[request.Decode]
	if prefill == nil || decode == nil {
		return
	}
	for _, t := range l.set.ThreadsOf(decode) {
		to := l.afterTransfer(t)
		if to == request.None {
			continue
		}
		from := l.threadOfTP(prefill, l.set.Procs[l.set.Threads[t].Proc].Rank.TP)
		transfer(l.stage(from, request.Sending), to)
	}
}

// afterTransfer returns the stage that begins on thread t when the KV cache has arrived, or None. The wait
// for the cache begins before the transfer does, so an arrow to the wait would point backward.
func (l *layout) afterTransfer(t int) int {
	arrived := false
	for _, i := range l.set.StagesOf(t) {
		if arrived {
			return int(i)
		}
		arrived = l.set.Row(int(i)).Means == request.Receiving
	}
	return request.None
}

// stage returns the last first-level stage of thread t with meaning m, or None.
func (l *layout) stage(t int, m request.Meaning) int {
	found := request.None
	if t == request.None {
		return found
	}
	for _, i := range l.set.StagesOf(t) {
		if l.set.Row(int(i)).Means == m {
			found = int(i)
		}
	}
	return found
}

func (l *layout) threadOn(p *request.Part, proc int) int {
	for _, t := range l.set.ThreadsOf(p) {
		if l.set.Threads[t].Proc == proc {
			return t
		}
	}
	return request.None
}

// threadOfTP returns the scheduler thread of the given TP rank that sends, or else the lead.
func (l *layout) threadOfTP(p *request.Part, tp int16) int {
	for _, t := range l.set.ThreadsOf(p) {
		if l.set.Procs[l.set.Threads[t].Proc].Rank.TP == tp && l.stage(t, request.Sending) != request.None {
			return t
		}
	}
	return l.set.Lead(p)
}

// edgeSize is roughly how many bytes [drawing.link] touches per edge, or the kernel maps for it: the slices
// at its ends are far apart.
const edgeSize = 256

// link draws the edges whose ends are both in this view.
func (d *drawing) link() {
	for i := range memory.Each(len(d.edges), edgeSize) {
		e := d.edges[i]
		if from, to := d.slice[e.from], d.slice[e.to]; from != 0 && to != 0 {
			d.b.Flow(trace.Flow{From: from, To: to, Name: e.name})
		}
	}
}

// linkRanks joins the kernels of a collective across ranks in order of arrival: the last arrow ends at the
// rank that the others waited for.
func (m *merging) linkRanks() {
	name := m.b.Intern("collective")
	rejected := m.clocks.Solution.Rejected
	for i, match := range m.clocks.Matches.All() {
		if len(rejected) > 0 && rejected[0] == i {
			rejected = rejected[1:]
			if match.Level > matching.BySeq {
				continue // matches by id hold whatever the clocks say, matches by call order don't
			}
		}
		members := slices.DeleteFunc(slices.Clone(match.Members), func(x matching.Member) bool { return m.clocks.AlignOf[x.Rank].IsOut })
		slices.SortFunc(members, func(a, b matching.Member) int {
			return cmp.Or(cmp.Compare(m.arrival(a), m.arrival(b)), cmp.Compare(m.nameOf(a), m.nameOf(b)))
		})
		prev := trace.SliceID(0)
		for _, member := range members {
			capture, c := m.clocks.Calls[member.Rank].Of(member.Index)
			at := m.drawn[capture.File].joined[c.Event]
			if prev != 0 && at != 0 {
				m.b.Flow(trace.Flow{From: prev, To: at, Name: name})
			}
			prev = cmp.Or(at, prev)
		}
	}
}

// arrival returns when a rank started a collective, on the common clock.
func (m *merging) arrival(x matching.Member) trace.Time {
	capture, c := m.clocks.Calls[x.Rank].Of(x.Index)
	return capture.Time(c.Time)
}

func (m *merging) nameOf(x matching.Member) string { return m.clocks.AlignOf[x.Rank].Name }

// A batch is a scheduler step, indexed by time.
type batch struct {
	time  trace.Time // on the common clock
	step  *profile.Step
	slice trace.SliceID
}

// linkSteps draws an arrow from the stage in which a request was scheduled to the step that ran its batch,
// on the same rank. Both come from one process, and so from one clock.
func (m *merging) linkSteps(d *drawing) {
	batches := map[int][]batch{} // by proc
	for _, r := range m.of.Tracks {
		if r.Proc != request.None {
			batches[r.Proc] = m.batches(r)
		}
	}
	runBy := m.b.Intern("run by")
	for i := range m.in.Requests.All() {
		proc := m.in.Requests.ProcOf(i)
		if d.slice[i] == 0 || len(batches[proc]) == 0 {
			continue
		}
		for _, e := range m.in.Requests.InstantsOf(i) {
			if e.Kind == request.Scheduled {
				if to := stepOf(&e, batches[proc]); to != 0 {
					m.b.Flow(trace.Flow{From: d.slice[i], To: to, Name: runBy})
				}
			}
		}
	}
}

// batches returns the drawn steps of a rank on its CPU thread, by time.
func (m *merging) batches(r *ranks.Track) (all []batch) {
	for _, c := range r.Captures {
		for i := range c.File.Steps {
			s := &c.File.Steps[i]
			if s.OnGPU || c.File.Rows[s.Row].Part != c.Part {
				continue
			}
			if at := m.drawn[c.File].joined[s.Event]; at != 0 {
				all = append(all, batch{c.Time(s.Time), s, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b batch) int { return cmp.Compare(a.time, b.time) })
	return all
}

const (
	// ScheduleSlack is how long before the event that scheduled it a step may begin: events lie on a grid
	// of 256 ns, and their clock is recalibrated now and then.
	ScheduleSlack = 5_000 // ns
	// scheduleReach is how long after the event the step may begin at the latest.
	scheduleReach = 50_000_000 // ns
)

// stepOf returns the slice of the step that ran the batch of a schedule event: the next step to begin, if
// its kind and size match; otherwise 0.
func stepOf(e *request.Instant, batches []batch) trace.SliceID {
	i := sort.Search(len(batches), func(i int) bool { return batches[i].time >= e.Time-ScheduleSlack })
	if i == len(batches) || batches[i].time > e.Time+scheduleReach {
		return 0
	}
	step := batches[i].step
	if e.Batch != request.Unknown && step.Batch >= 0 && int64(e.Batch) != int64(step.Batch) {
		return 0
	}
	if e.Mode != request.UnknownMode {
		prefill := e.Mode == request.PrefillMode
		if step.Kind == profile.StepPrefill && !prefill || step.Kind == profile.StepDecode && prefill {
			return 0
		}
	}
	return batches[i].slice
}

// manyEvents is the number of events above which a file's tables are worth returning to the system at once.
const manyEvents = 1 << 20

// finish draws the arrows within a file once all of its events are drawn, and releases the events.
func (m *merging) finish(f *inputs.ProcessProfile) {
	m.linkLaunches(f)
	m.linkArrows(f)
	d := m.drawn[f]
	for e, s := range d.joined {
		d.joined[e] = cmp.Or(s, d.slice(e))
	}
	many := len(f.Events) > manyEvents
	f.Events, f.Samples, f.Instants, d.slices, f.Lines = nil, nil, nil, nil, nil
	if many {
		// The timeline grows by as much as these tables shrink, but only if their memory is returned to the
		// system at once.
		debug.FreeOSMemory()
	}
}

// linkLaunches joins launches with their device work by correlation ID. One CUDA graph launch may start
// hundreds of kernels; each gets its own arrow.
func (m *merging) linkLaunches(f *inputs.ProcessProfile) {
	parts, d := f.Parts(), m.drawn[f]
	name := m.b.Intern("launch")
	for _, part := range parts {
		in := func(r *profile.Row) bool { return len(parts) == 1 || r.Part == part }
		launches := f.JoinLaunches(in)
		for i := range f.Events {
			w := &f.Events[i]
			if !w.IsWork() || !in(&f.Rows[w.Place.Row()]) {
				continue
			}
			if a, b := d.slice(launches.Of(w.Correlation)), d.slice(int32(i)); a != 0 && b != 0 {
				m.b.Flow(trace.Flow{From: a, To: b, Name: name})
			}
		}
	}
}

// arrowKey identifies a chain of flow events. IDs are unique within a part, category, and name: SGLang's
// merger gives all ranks the same ones. Flows stored on slices have an ID space of their own.
type arrowKey struct {
	part, cat, name, id string
	own                 bool
}

func (m *merging) arrowKey(f *inputs.ProcessProfile, a *profile.Arrow) arrowKey {
	return arrowKey{f.Rows[a.Row].Part, m.name(a.Cat), m.name(a.Name), m.name(a.ID), a.Event != profile.NoEvent}
}

func (k arrowKey) compare(o arrowKey) int {
	return cmp.Or(strings.Compare(k.part, o.part), strings.Compare(k.cat, o.cat), strings.Compare(k.name, o.name),
		strings.Compare(k.id, o.id), order.Bool(k.own, o.own))
}

// linkArrows draws the flows recorded in a file.
func (m *merging) linkArrows(f *inputs.ProcessProfile) {
	slices.SortStableFunc(f.Arrows, func(a, b profile.Arrow) int {
		return cmp.Or(m.arrowKey(f, &a).compare(m.arrowKey(f, &b)), cmp.Compare(a.Time, b.Time), cmp.Compare(phaseOrder(a.Phase), phaseOrder(b.Phase)))
	})
	bound, d := bindArrows(f), m.drawn[f]
	lost, prev := 0, trace.SliceID(0)
	for i := range f.Arrows {
		a := &f.Arrows[i]
		if i == 0 || m.arrowKey(f, a) != m.arrowKey(f, &f.Arrows[i-1]) {
			prev = 0
		}
		at := d.slice(bound[i])
		if at == 0 || a.Phase != profile.FlowStart && prev == 0 {
			lost++
		} else if a.Phase != profile.FlowStart && prev != at {
			m.b.Flow(trace.Flow{From: prev, To: at, Name: a.Name})
		}
		switch {
		case a.Phase != profile.FlowEnd:
			prev = at
		case a.Event == profile.NoEvent:
			prev = 0
		} // a flow start stored on a slice may have several ends
	}
	if lost > 0 {
		m.in.Diags.Add(trace.FlowWithoutEnd.Of(f.Name).Times(lost))
	}
}

func phaseOrder(p profile.FlowPhase) int {
	return strings.IndexByte("stf", byte(p))
}

// bindArrows returns the event that each flow event binds to: the innermost one around its time on its row,
// or, for an end without bp:"e", the next one to start. It is NoEvent if there is none.
func bindArrows(f *inputs.ProcessProfile) []int32 {
	bound := make([]int32, len(f.Arrows))
	byLine := map[int32][]int32{}
	for i := range f.Arrows {
		if bound[i] = f.Arrows[i].Event; bound[i] != profile.NoEvent {
			continue
		}
		line := f.LineOf[f.Arrows[i].Row]
		byLine[line] = append(byLine[line], int32(i))
	}
	for line, arrows := range byLine {
		slices.SortStableFunc(arrows, func(a, b int32) int { return cmp.Compare(f.Arrows[a].Time, f.Arrows[b].Time) })
		for _, lane := range f.Lines[line].Lanes {
			bindToLane(f, arrows, lane, bound)
		}
	}
	return bound
}

// bindToLane sweeps over a lane and the flow events of its line, both sorted by time. If several lanes have
// candidates, the event that starts last wins.
func bindToLane(f *inputs.ProcessProfile, arrows []int32, lane []uint32, bound []int32) {
	var open []uint32 // current events, innermost last
	next := 0
	for _, i := range arrows {
		a := &f.Arrows[i]
		forward := a.Phase == profile.FlowEnd && !a.Enclosing
		for next < len(lane) && (f.Events[lane[next]].Time < a.Time || !forward && f.Events[lane[next]].Time == a.Time) {
			open = append(over(f, open, f.Events[lane[next]].Time), lane[next])
			next++
		}
		found := int32(profile.NoEvent)
		switch {
		case forward && next < len(lane):
			found = int32(lane[next])
		case !forward:
			if open = over(f, open, a.Time); len(open) > 0 {
				found = int32(open[len(open)-1])
			}
		}
		if found != profile.NoEvent && (bound[i] == profile.NoEvent || f.Events[bound[i]].Time < f.Events[found].Time) {
			bound[i] = found
		}
	}
}

// over pops the events that ended before t.
func over(f *inputs.ProcessProfile, open []uint32, t trace.Time) []uint32 {
	for len(open) > 0 && f.Events[open[len(open)-1]].End() < t {
		open = open[:len(open)-1]
	}
	return open
}
