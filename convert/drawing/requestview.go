package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// requestPlace says where a request is drawn in the view by request.
type requestPlace struct {
	drawn        bool
	group, order int32 // index of its group, and its index in the group
}

// placeRequests records where requests are drawn.
func (l *layout) placeRequests(groups []requestGroup) {
	l.groups, l.places = groups, make([]requestPlace, len(l.set.Requests))
	for g := range groups {
		for k, r := range groups[g].requests {
			l.places[r] = requestPlace{true, int32(g), int32(k)}
		}
	}
}

// byRequest reports whether the view by request has span i.
func (l *layout) byRequest(i int) bool {
	r := l.set.RequestOf(i)
	return r != request.None && l.places[r].drawn
}

// requestRoom returns the maximum capacity that the view by request needs.
func (l *layout) requestRoom() (room trace.Capacity) {
	parallel.Fold(l.set.Len(), request.RowSize, func() *trace.Capacity { return new(trace.Capacity) }, func(sum *trace.Capacity, from, to int) {
		for i := from; i < to; i++ {
			if l.drawn(i) && l.byRequest(i) {
				sum.Slices++
				sum.Instants += len(l.set.InstantsOf(i)) + 1 // one more for how its thread ended
			}
		}
	}, func(sum *trace.Capacity) { room = room.Plus(*sum) })
	for i := range memory.Each(len(l.edges), edgeSize) {
		e := l.edges[i]
		if l.byRequest(int(e.from)) && l.byRequest(int(e.to)) {
			room.Flows++
		}
	}
	return room
}

// reportLeftOut reports how many requests the view by request leaves out.
func (l *layout) reportLeftOut() {
	if n := len(l.set.Requests) - l.requestsDrawn(); n > 0 {
		l.set.Diags.Add(trace.RequestsLeftOut.Of("", l.requestsDrawn(), len(l.set.Requests)))
	}
}

// requestsDrawn counts the requests of the view by request.
func (l *layout) requestsDrawn() (n int) {
	return order.SumRows(l.groups, func(r *requestGroup) int { return len(r.requests) })
}

// rootSlice is the name and subject of a request's outermost slice.
type rootSlice struct {
	name  trace.Sym
	about trace.SubjectID
}

// drawRequests draws the request view: request > thread > stages. The track of a request itself holds its
// outermost span. spans is the number of spans in the view.
func (l *layout) drawRequests(b *trace.Builder, spans int) *drawing {
	outermost := make([]int, len(l.set.Requests))
	isOutermost := make(map[int]bool, l.requestsDrawn())
	for r := range l.set.AllRequests() {
		if l.places[r].drawn {
			outermost[r] = l.outermost(r)
			isOutermost[outermost[r]] = true
		}
	}
	// A part of a request nests neither in a span that belongs to no request or is not drawn, nor in an outermost span other
	// than a gateway's.
	units, isTop := l.findUnits(l.byRequest, func(i int) bool {
		return !l.byRequest(i) || l.set.Kind(i) != request.Gateway && isOutermost[i]
	})
	d := l.newDrawing(b, isTop)
	labels := d.procLabels()
	d.subject, d.roots = l.colored.part, d.rootSlices(outermost)
	d.name = func(i int, kind request.Kind) trace.Sym {
		if kind == request.Root {
			return l.parts[l.set.PartOf(i)]
		}
		return labels[l.set.ProcOf(i)].thread
	}
	groups := d.groupTracks(spans)
	eachGroup(units, byRequest, func(units []unit) {
		d.sortUnits(units)
		r := int(units[0].request)
		track := d.requestTrack(r, groups(r))
		if i := slices.IndexFunc(units, func(u unit) bool { return int(u.span) == outermost[r] }); i >= 0 {
			d.draw(units[i:i+1], track)
			units = slices.Delete(units, i, i+1)
		}
		slices.SortStableFunc(units, func(x, y unit) int { return cmp.Compare(x.proc, y.proc) })
		for of := range order.Runs(units, func(a, b *unit) bool { return a.proc == b.proc }) {
			d.drawProc(of, track, &labels[of[0].proc])
		}
	})
	d.link()
	return d
}

// rootSlices names the outermost spans of requests by rid and outcome.
func (d *drawing) rootSlices(outermost []int) map[int]rootSlice {
	roots := map[int]rootSlice{}
	for r := range d.set.AllRequests() {
		if i := outermost[r]; d.places[r].drawn && i != request.None {
			req := &d.set.Requests[r]
			name := d.b.Intern("Req " + shorten(strings.TrimPrefix(d.set.Text(req.RID), healthCheck)) + naming.Separator + req.Status.String())
			roots[i] = rootSlice{name, d.colored.root[r]}
		}
	}
	return roots
}

// groupTracks adds the track of the view, and returns a function for the parent track of a request. A
// group's track is added with its first request. spans is the number of spans in the view.
func (d *drawing) groupTracks(spans int) func(r int) trace.TrackID {
	name, desc := "By request", "every request with the threads that worked on it, by arrival"
	if n := d.requestsDrawn(); n < len(d.set.Requests) {
		name += fmt.Sprintf("%s%d of %d", naming.Separator, n, len(d.set.Requests))
		desc = fmt.Sprintf("%d of %d requests with the threads that worked on them; --requests all draws all of them", n, len(d.set.Requests))
	}
	root := d.b.Track(trace.Track{Name: d.b.Intern(name), Order: 1, Rank: trace.NoRank, Desc: d.b.Intern(desc)})
	d.outline(d.b, root, spans)
	tracks := make([]trace.TrackID, len(d.groups))
	return func(r int) trace.TrackID {
		g := d.places[r].group
		if d.groups[g].name == "" {
			return root
		}
		if tracks[g] == 0 {
			tracks[g] = d.b.Track(trace.Track{Parent: root, Name: d.b.Intern(d.groups[g].name), Order: g, Rank: trace.NoRank, Desc: d.b.Intern(d.groups[g].desc)})
		}
		return tracks[g]
	}
}

// drawProc draws the units of one proc under the track of their request.
func (d *drawing) drawProc(units []unit, parent trace.TrackID, label *procLabel) {
	p := units[0].proc
	proc := &d.set.Procs[p]
	for k, lane := range pack(units) {
		name := label.track
		if k > 0 {
			name = d.b.Intern(fmt.Sprintf("%s +%d", d.set.ProcOn(int(p)), k))
		}
		d.draw(lane, d.b.Track(trace.Track{Parent: parent, Kind: trace.KindThread, Name: name, Order: p*lanesPerProc + int32(min(k, lanesPerProc-1)),
			Rank: proc.Rank, PID: proc.PID, Host: label.host, Desc: label.desc}))
	}
}

// procLabel holds the names of a proc in the request view: those of its tracks, and those of its thread
// spans, which say where they ran.
type procLabel struct{ track, thread, desc, host trace.Sym }

func (d *drawing) procLabels() []procLabel {
	labels := make([]procLabel, len(d.set.Procs))
	for p := range labels {
		proc := &d.set.Procs[p]
		labels[p] = procLabel{
			track:  d.b.Intern(d.set.ProcOn(p)),
			thread: d.b.Intern(d.set.ProcName(p)), desc: d.b.Intern(fmt.Sprintf("spans of pid %d on host %s", proc.PID, d.set.HostOf(p))), host: d.b.Intern(proc.Host),
		}
	}
	return labels
}

// lanesPerProc keeps the lanes of a proc together among the tracks of a request.
const lanesPerProc = 16

// outermost returns the drawn span that covers request r as its user saw it: the gateway's, the envelope's,
// the router's, or else the answering server's; or None.
func (l *layout) outermost(r int) int {
	req := &l.set.Requests[r]
	if g := req.Gateway; g != request.None && l.set.RequestOf(g) == r && l.drawn(g) {
		return g
	}
	if root := l.set.Parts[l.set.PartsOf(req)[0]].Root; root != request.None {
		if e := l.above(root); e != request.None && l.set.Kind(e) == request.Envelope {
			return e
		}
	}
	for _, p := range l.set.PartsOf(req) {
		if root := l.set.Parts[p].Root; l.set.Parts[p].Role == request.Router && root != request.None && l.drawn(root) {
			return root
		}
	}
	if root := l.set.Parts[l.set.Answering(req)].Root; root != request.None && l.drawn(root) {
		return root
	}
	return request.None
}

// healthCheck begins the rids of requests that a server sends to itself.
const healthCheck = "HEALTH_CHECK_"

// requestTrack adds the track of a request, with a telling name: "Req 7ca07386 · 345.6ms · 512+128 tokens ·
// aborted".
func (d *drawing) requestTrack(r int, root trace.TrackID) trace.TrackID {
	req := &d.set.Requests[r]
	m := &req.Metrics
	name := append(d.text[:0], "Req "...)
	name = append(name, shorten(strings.TrimPrefix(d.set.Text(req.RID), healthCheck))...)
	if m.E2E != request.Unknown {
		name = trace.AppendDuration(append(name, " · "...), m.E2E)
	}
	if m.PromptTokens != request.Unknown && m.CompletionTokens != request.Unknown {
		name = strconv.AppendInt(append(name, " · "...), m.PromptTokens, 10)
		name = append(strconv.AppendInt(append(name, '+'), m.CompletionTokens, 10), " tokens"...)
	}
	if req.Status != request.Finished {
		name = append(append(name, " · "...), req.Status.String()...)
	}
	d.text = name
	desc := "request " + d.set.Text(req.RID)
	if m.TTFT != request.Unknown {
		desc += ", first token after " + trace.FormatDuration(m.TTFT)
	}
	if req.Reason != 0 {
		desc += ", " + req.Status.String() + ": " + d.set.Syms.Name(req.Reason)
	}
	return d.b.Track(trace.Track{Parent: root, Kind: trace.KindRequest, Name: d.b.Intern(string(name)), Order: d.places[r].order,
		Rank: trace.NoRank, Desc: d.b.Intern(desc)})
}
