package drawing

import (
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Categories of what kernels were launched in. They are not those of operators and modules that ran: who reads the
// timeline as an input must not count them.
const (
	moduleCategory   = "graph_module"
	operatorCategory = "graph_operator"
)

// nest prepares a file for what its kernels were launched in.
func (m *merging) nest(d *drawnFile, nested []Nested) {
	d.nested, d.begins = nested, make(map[int32]int, len(nested))
	for i := range nested {
		if _, ok := d.begins[nested[i].First]; !ok {
			d.begins[nested[i].First] = i
		}
	}
	m.nestKey = m.b.Intern("Input Dims")
}

// drawNested adds a track behind a row of a device, with what the kernels of graphs on it were launched in. track is
// that of the row, called name.
func (m *merging) drawNested(r *ranks.Track, row *row, track trace.Track, name string) {
	if row.key.Kind != profile.RowStream {
		return
	}
	id := trace.TrackID(0)
	module, operator := m.b.Intern(moduleCategory), m.b.Intern(operatorCategory)
	for c, l := range row.lines {
		capture := r.Captures[c]
		d := m.drawn[capture.File]
		if l == nil || len(d.nested) == 0 {
			continue
		}
		for _, lane := range l.Lanes {
			for _, event := range lane {
				at, ok := d.begins[int32(event)]
				if !ok {
					continue
				}
				if id == 0 {
					track.Name = m.b.Intern(name + ": modules and operators")
					track.Desc = m.b.Intern("what launched the kernels of CUDA graphs when these were captured")
					id = m.b.Track(track)
				}
				for ; at < len(d.nested) && d.nested[at].First == int32(event); at++ {
					n := &d.nested[at]
					from := capture.Time(n.From)
					s := trace.Slice{Time: from, Dur: int64(capture.Time(n.To) - from), Track: id, Name: n.Name, Cat: module}
					if n.Operator {
						s.Cat = operator
					}
					if n.Shapes != 0 {
						s.Args = m.b.Args().Put(trace.ArgList(nil).String(m.nestKey, m.name(n.Shapes)))
					}
					m.b.Slice(s, 0)
				}
			}
		}
	}
}
