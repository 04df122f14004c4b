package inputs

import (
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// leastPicked is from which size on, in bytes on the disk, dumps are outlined before they are
// read: below, all is read in no time.
var leastPicked = int64(8 << 20)

// worthAPick reports whether dumps can be read twice, and are so large that it pays to look
// which traces to read.
func worthAPick(dumps []*Indexed) bool {
	size := int64(0)
	for _, x := range dumps {
		if x.Once || x.Format.Outline == nil && !x.Input.Extracted() {
			return false
		}
		if bytes, folder := x.Input.Size(); !folder {
			size += bytes
		}
	}
	return size >= leastPicked
}

// indexPicked reads those traces of the dumps that Options.Pick chooses. If they turn out not
// to be enough, it reads again. Messages are about what is read at last.
func (m *Inputs) indexPicked(dumps []*Indexed) error {
	o := spantable.NewOutline(m.Opt.Pick.Look())
	for _, x := range dumps {
		// What cannot be read is reported when that is tried.
		_ = x.outline(o)
	}
	told := m.Diags
	for {
		chosen, err := m.Opt.Pick.Choose(o)
		if err != nil {
			return err
		}
		m.Diags = &trace.Diags{}
		m.Dump = newDump(m.Diags, m.Opt.KeepSecrets)
		m.Dump.Chosen = chosen
		m.Assembled, m.Requests = nil, nil
		m.indexRequests(dumps)
		m.assemble()
		if chosen == nil || m.Requests == nil || m.Opt.Pick.Suffices(m.Requests) {
			break
		}
	}
	for _, d := range m.Diags.All() {
		told.Add(d)
	}
	m.Diags, m.Dump.Diags = told, told
	if m.Requests != nil {
		m.Requests.Diags = told
	}
	return nil
}

// outline looks at the spans of a dump.
func (x *Indexed) outline(o *spantable.Outline) error {
	if c := x.Input.capture; c != nil {
		return c.Outline(x.asked().Name, o)
	}
	return x.Format.Outline(x.asked(), o)
}

// assemble makes requests of the spans, if there are any.
func (m *Inputs) assemble() {
	if m.Dump.Len() > 0 {
		m.Assembled = assembly.Consume(m.Dump)
		m.Requests = m.Assembled.Set
	}
}
