package convert

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// drawRequests draws the request view: request > thread > stages. The track of
// a request itself holds its outermost span.
func (l *layout) drawRequests(edges []edge) {
	outermost := make(map[int]int, len(l.set.Requests)) // request by span
	for r := range l.set.Requests {
		if i := l.outermost(r); i != request.None {
			outermost[i] = r
		}
	}
	alone := func(i int) bool { _, ok := outermost[i]; return ok && l.set.Kind(i) != request.Gateway }
	units, isTop := l.units(alone)
	byRequest := func(u unit) int { return u.request }
	byProc := func(u unit) int { return u.proc }
	l.orderUnits(units, byProc)
	l.orderUnits(units, byRequest)

	d := l.newDrawing(isTop, l.requestViewName())
	root := l.Track(trace.Track{Name: l.Intern("By request"), Order: 1,
		Desc: l.Intern("every request with the threads that worked on it, by arrival")})
	eachGroup(units, byRequest, func(units []unit) {
		r := units[0].request
		if r == request.None {
			return
		}
		track := l.requestTrack(r, root)
		l.orderUnits(units, byProc)
		eachGroup(units, byProc, func(units []unit) {
			var rest []unit
			for _, u := range units {
				if owner, ok := outermost[u.span]; ok && owner == r {
					d.draw(u.span, track)
				} else {
					rest = append(rest, u)
				}
			}
			d.drawProc(rest, track)
		})
	})
	d.link(edges)
}

// drawProc draws the units of one proc under the track of their request.
func (d *drawing) drawProc(units []unit, parent trace.TrackID) {
	if len(units) == 0 {
		return
	}
	proc := &d.set.Procs[units[0].proc]
	lane, lanes := pack(units)
	tracks := make([]trace.TrackID, lanes)
	for k := range tracks {
		name := fmt.Sprintf("%s (%s)", procName(proc), proc.ShortHost())
		if k > 0 {
			name += fmt.Sprintf(" +%d", k)
		}
		tracks[k] = d.Track(trace.Track{Parent: parent, Kind: trace.KindThread, Name: d.Intern(name), Order: int32(units[0].proc*16 + min(k, 15)),
			Rank: proc.Rank, PID: proc.PID, Host: d.Intern(proc.Host), Desc: d.Intern(source(proc))})
	}
	for u := range units {
		d.draw(units[u].span, tracks[lane[u]])
	}
}

// outermost returns the drawn span that lasts as long as request r does for its
// user: the gateway's, the router's, else the answering server's; or None.
func (l *layout) outermost(r int) int {
	req := &l.set.Requests[r]
	if g := req.Gateway; g != request.None && l.set.RequestOf(g) == r && l.drawn(g) {
		return g
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
func (l *layout) requestTrack(r int, root trace.TrackID) trace.TrackID {
	req := &l.set.Requests[r]
	parts := []string{"Req " + shorten(strings.TrimPrefix(req.RID, "HEALTH_CHECK_"))}
	m := &req.Metrics
	if m.E2E != request.Unknown {
		parts = append(parts, trace.FormatDuration(m.E2E))
	}
	if m.PromptTokens != request.Unknown && m.CompletionTokens != request.Unknown {
		parts = append(parts, fmt.Sprintf("%d+%d tokens", m.PromptTokens, m.CompletionTokens))
	}
	if req.Status != request.Finished {
		parts = append(parts, req.Status.String())
	}
	desc := "request " + req.RID
	if m.TTFT != request.Unknown {
		desc += ", first token after " + trace.FormatDuration(m.TTFT)
	}
	if req.Reason != "" {
		desc += ", " + req.Status.String() + ": " + req.Reason
	}
	return l.Track(trace.Track{Parent: root, Kind: trace.KindRequest, Name: l.Intern(strings.Join(parts, " · ")), Order: int32(r),
		Rank: trace.NoRank, Desc: l.Intern(desc)})
}

// requestViewName names slices for the request view: a thread span says where
// it ran, since its row is inside the request.
func (l *layout) requestViewName() func(i int) trace.Sym {
	procs := make([]trace.Sym, len(l.set.Procs))
	return func(i int) trace.Sym {
		switch l.set.Kind(i) {
		case request.ThreadSpan:
			p := l.set.ProcOf(i)
			if procs[p] == 0 {
				procs[p] = l.Intern(procName(&l.set.Procs[p]))
			}
			return procs[p]
		case request.Root:
			return l.Intern(trimName(l.set.Name(i)))
		}
		return l.set.Dump.Span(i).Name
	}
}

// trimName removes the blank in front of the root names of unified servers.
func trimName(name string) string { return strings.TrimSpace(name) }
