package drawing

import (
	"cmp"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// addSubjects makes every part of a request the subject of its slices. All parts
// of a request have one color; each has the rid that its server gave it.
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

// requestSubjects are what slices of the view by request are about. They have the
// arguments of the subjects of the other view, but not the color of their request: there,
// colors tell stages apart, which go by the names of slices.
type requestSubjects struct {
	part []trace.SubjectID // of each part, without a color
	root []trace.SubjectID // of each request, in the color of how it ended
}

// addRequestSubjects adds the subjects of the requests that the view by request has.
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

// uniqueID is what colors a request: its id, told apart from those that
// collide with it.
func (l *layout) uniqueID(r *request.Request) string {
	if r.Flags&request.RIDCollision != 0 {
		return l.set.Text(r.RID) + " " + l.set.TraceID(r)
	}
	return l.set.Text(r.RID)
}

// about returns the subject of span i: the part it belongs to, for a gateway's
// span that of the answering server.
func (d *drawing) about(i int) trace.SubjectID {
	if p := d.set.PartOf(i); p != request.None {
		return d.subject[p]
	}
	if r := d.set.RequestOf(i); r != request.None {
		return d.subject[d.set.Answering(&d.set.Requests[r])]
	}
	return 0
}
