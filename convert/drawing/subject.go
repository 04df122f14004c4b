package drawing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// addSubjects makes every part of a request the subject of its slices. All parts of a request share one
// color; each has the rid that its own server gave it.
func (l *layout) addSubjects(b *trace.Builder) {
	var list trace.ArgList
	rid, full, room := b.Intern("rid"), b.Intern("request"), b.Intern("bootstrap_room")
	l.subject, l.identity = make([]trace.SubjectID, len(l.set.Parts)), make([]trace.ArgsID, len(l.set.Parts))
	for r := range l.set.AllRequests() {
		req := &l.set.Requests[r]
		id := b.Intern(l.uniqueID(req))
		for _, p := range l.set.PartsOf(req) {
			part := &l.set.Parts[p]
			list = list[:0].String(rid, cmp.Or(l.set.Text(part.RID), l.set.Text(req.RID)))
			if l.set.Text(req.RID) != l.set.Text(part.RID) {
				list = list.String(full, l.set.Text(req.RID))
			}
			if req.Room != 0 {
				list = list.String(room, l.set.Text(req.Room))
			}
			l.identity[p] = b.Args().Put(list)
			l.subject[p] = b.Subject(trace.Subject{ID: id, Args: l.identity[p]})
		}
	}
}

// requestSubjects are the subjects of slices in the view by request. They have the same arguments as in the
// other view, but not the color of their request: here, colors distinguish stages, by the names of slices.
type requestSubjects struct {
	part []trace.SubjectID // of each part, without a color
	root []trace.SubjectID // of each request, colored by outcome
}

// addRequestSubjects adds the subjects of the requests in the view by request.
func (l *layout) addRequestSubjects(b *trace.Builder) {
	l.colored = requestSubjects{make([]trace.SubjectID, len(l.set.Parts)), make([]trace.SubjectID, len(l.set.Requests))}
	for r := range l.set.AllRequests() {
		if !l.places[r].drawn {
			continue
		}
		req := &l.set.Requests[r]
		for _, p := range l.set.PartsOf(req) {
			l.colored.part[p] = b.Subject(trace.Subject{Args: l.identity[p]})
		}
		l.colored.root[r] = b.Subject(trace.Subject{ID: b.Intern(req.Status.String()), Args: l.identity[l.set.Answering(req)]})
	}
}

// uniqueID returns the ID that colors a request; it includes the trace ID if rids collide.
func (l *layout) uniqueID(r *request.Request) string {
	if r.Flags&request.RIDCollision != 0 {
		return l.set.Text(r.RID) + " " + l.set.TraceID(r)
	}
	return l.set.Text(r.RID)
}

// about returns the subject of span i: its part, or, for a gateway's span, the part of the answering
// server.
func (d *drawing) about(i int) trace.SubjectID {
	if p := d.set.PartOf(i); p != request.None {
		return d.subject[p]
	}
	if r := d.set.RequestOf(i); r != request.None {
		return d.subject[d.set.Answering(&d.set.Requests[r])]
	}
	return 0
}

// scopes are the instrumentation scopes of rows: the libraries that recorded them. If all rows of a process
// have the same scope, only the trace names it; otherwise, each slice does.
type scopes struct {
	key     trace.Sym
	differs []bool // by source: whether its process has rows of other scopes
}

// newScopes finds the processes whose rows have several scopes.
func newScopes(set *request.Set, b *trace.Builder) scopes {
	s := scopes{key: b.Intern("otel.scope.name"), differs: make([]bool, len(set.Sources))}
	of := map[int][]trace.Sym{} // by writer
	eachSource(set, func(x *request.Source) {
		if list := of[x.Writer]; !slices.Contains(list, x.Scope) {
			of[x.Writer] = append(list, x.Scope)
		}
	})
	for i, x := range set.Sources {
		s.differs[i] = x.Scope != 0 && len(of[x.Writer]) > 1
	}
	return s
}

// eachSource calls f for every source that rows come from.
func eachSource(set *request.Set, f func(*request.Source)) {
	used := make([]atomic.Bool, len(set.Sources))
	parallel.Rows(set.Len(), request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			if at := &used[set.Rows[i].Source]; !at.Load() {
				at.Store(true)
			}
		}
	})
	for s := range used {
		if used[s].Load() {
			f(&set.Sources[s])
		}
	}
}

// describeScopes records the scopes of all services.
func describeScopes(b *trace.Builder, set *request.Set) {
	of := map[string][]string{} // by service
	eachSource(set, func(x *request.Source) {
		service, scope := set.Syms.Name(set.Writers[x.Writer].Service), set.Syms.Name(x.Scope)
		if scope != "" && !slices.Contains(of[service], scope) {
			of[service] = append(of[service], scope)
		}
	})
	for _, service := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[service])
		b.Attribute("sgtrace.scope."+cmp.Or(service, "unknown service"), strings.Join(of[service], ", "))
	}
}

// withScope returns the arguments of a row, with its scope if its process has several.
func (d *drawing) withScope(row *request.Row, args trace.ArgsID) trace.ArgsID {
	if !d.scopes.differs[row.Source] {
		return args
	}
	d.scratch = d.scratch[:0].String(d.scopes.key, d.set.Syms.Name(d.set.Sources[row.Source].Scope))
	return d.b.Args().Put(d.scratch.Extend(args))
}
