package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// drawRequests draws the request view: request > thread > stages. The track of
// a request itself holds its outermost span.
func (l *layout) drawRequests(b *trace.Builder) *drawing {
	outermost := make([]int, len(l.set.Requests))
	isOutermost := make(map[int]bool, len(l.set.Requests))
	for r := range l.set.Requests {
		outermost[r] = l.outermost(r)
		isOutermost[outermost[r]] = true
	}
	// Nor does a part of a request nest in a span that is of none, and is not drawn.
	units, isTop := l.findUnits(func(i int) bool {
		return l.set.RequestOf(i) == request.None || l.set.Kind(i) != request.Gateway && isOutermost[i]
	})
	d := l.newDrawing(b, isTop)
	labels := d.procLabels()
	d.name = func(i int, kind request.Kind) trace.Sym {
		if kind == request.Root {
			return l.parts[l.set.PartOf(i)]
		}
		return labels[l.set.ProcOf(i)].thread
	}
	root := d.Track(trace.Track{Name: d.Intern("By request"), Order: 1, Rank: trace.NoRank,
		Desc: d.Intern("every request with the threads that worked on it, by arrival")})
	eachGroup(units, byRequest, func(units []unit) {
		r := int(units[0].request)
		track := d.requestTrack(r, root)
		if i := slices.IndexFunc(units, func(u unit) bool { return int(u.span) == outermost[r] }); i >= 0 {
			d.draw(units[i:i+1], track)
			units = slices.Delete(units, i, i+1)
		}
		slices.SortStableFunc(units, func(x, y unit) int { return cmp.Compare(x.proc, y.proc) })
		for from := 0; from < len(units); {
			to := from + 1
			for to < len(units) && units[to].proc == units[from].proc {
				to++
			}
			d.drawProc(units[from:to], track, &labels[units[from].proc])
			from = to
		}
	})
	d.link()
	return d
}

// drawProc draws the units of one proc under the track of their request.
func (d *drawing) drawProc(units []unit, parent trace.TrackID, label *procLabel) {
	p := units[0].proc
	proc := &d.set.Procs[p]
	for k, lane := range pack(units) {
		name := label.track
		if k > 0 {
			name = d.Intern(fmt.Sprintf("%s +%d", d.set.ProcOn(int(p)), k))
		}
		d.draw(lane, d.Track(trace.Track{Parent: parent, Kind: trace.KindThread, Name: name, Order: p*lanesPerProc + int32(min(k, lanesPerProc-1)),
			Rank: proc.Rank, PID: proc.PID, Host: label.host, Clock: d.clocks[p], Desc: label.desc}))
	}
}

// procLabel is how a proc is called in the request view: its tracks, and the
// slices of its thread spans, which say where they ran.
type procLabel struct{ track, thread, desc, host trace.Sym }

func (d *drawing) procLabels() []procLabel {
	labels := make([]procLabel, len(d.set.Procs))
	for p := range labels {
		proc := &d.set.Procs[p]
		labels[p] = procLabel{
			track:  d.Intern(d.set.ProcOn(p)),
			thread: d.Intern(d.set.ProcName(p)), desc: d.Intern(fmt.Sprintf("spans of pid %d on host %s", proc.PID, d.set.HostOf(p))), host: d.Intern(proc.Host),
		}
	}
	return labels
}

// lanesPerProc keeps the lanes of a proc together in the order of a request's
// tracks.
const lanesPerProc = 16

// outermost returns the drawn span that lasts as long as request r does for its
// user: the gateway's, the envelope's, the router's, else the answering server's;
// or None.
func (l *layout) outermost(r int) int {
	req := &l.set.Requests[r]
	if g := req.Gateway; g != request.None && l.set.RequestOf(g) == r && l.drawn(g) {
		return g
	}
	if root := l.set.Parts[req.Parts[0]].Root; root != request.None {
		if e := l.above(root); e != request.None && l.set.Kind(e) == request.Envelope {
			return e
		}
	}
	for _, p := range req.Parts {
		if root := l.set.Parts[p].Root; l.set.Parts[p].Role == request.Router && root != request.None && l.drawn(root) {
			return root
		}
	}
	if root := l.set.Parts[l.set.Answering(req)].Root; root != request.None && l.drawn(root) {
		return root
	}
	return request.None
}

// requestTrack names the track of a request by what tells it apart:
// "Req 7ca07386 · 345.6ms · 512+128 tokens · aborted".
func (d *drawing) requestTrack(r int, root trace.TrackID) trace.TrackID {
	req := &d.set.Requests[r]
	m := &req.Metrics
	name := append(d.text[:0], "Req "...)
	name = append(name, shorten(strings.TrimPrefix(req.RID, "HEALTH_CHECK_"))...)
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
	desc := "request " + req.RID
	if m.TTFT != request.Unknown {
		desc += ", first token after " + trace.FormatDuration(m.TTFT)
	}
	if req.Reason != "" {
		desc += ", " + req.Status.String() + ": " + req.Reason
	}
	return d.Track(trace.Track{Parent: root, Kind: trace.KindRequest, Name: d.Intern(string(name)), Order: int32(r),
		Rank: trace.NoRank, Desc: d.Intern(desc)})
}
