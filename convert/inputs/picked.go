package inputs

import (
	"fmt"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// leastPicked is from which size on, in bytes on the disk, dumps are outlined before they are
// read: below, all is read in no time.
var leastPicked = int64(8 << 20)

// canPick reports whether all dumps can be outlined, and may be so large that it pays to look
// which traces to read: how large a pipe is, nobody knows.
func canPick(dumps []*Source) bool {
	size, once := int64(0), false
	for _, x := range dumps {
		if x.Format.Outline == nil && !x.Input.Extracted() {
			return false
		}
		size, once = size+x.size(), once || x.Once
	}
	return once || size >= leastPicked
}

// size is that of a dump on the disk, or of what came through a pipe.
func (x *Source) size() int64 {
	if x.spool != nil {
		return x.spool.Size()
	}
	bytes, folder := x.Input.Size()
	if folder {
		return 0
	}
	return max(0, bytes)
}

// indexPicked reads those traces of the dumps that Options.Pick chooses. If they turn out not
// to be enough, it reads again. Messages are about what is read at last. Pipes are kept until
// then.
func (m *Loaded) indexPicked(dumps []*Source) error {
	o, size := spantable.NewOutline(m.opt.Pick.Prescan()), int64(0)
	for _, x := range dumps {
		if x.Once {
			x.spool = new(memory.Spool)
			defer x.close()
		}
		// What cannot be read is reported when that is tried.
		if err := x.outline(o); err != nil && x.spool != nil && x.spool.Failed() != nil {
			return fmt.Errorf("%s: %w", x.name(), err)
		}
		size += x.size()
	}
	if size < leastPicked {
		m.indexRequests(dumps)
		return nil
	}
	return m.indexSelected(dumps, o)
}

// indexSelected is indexPicked behind the look.
func (m *Loaded) indexSelected(dumps []*Source, o *spantable.Outline) error {
	told := m.Diags
	for {
		chosen, err := m.opt.Pick.Choose(o)
		if err != nil {
			return err
		}
		m.Diags = &trace.Diags{}
		m.Spans = newSpans(m.Diags, m.opt.KeepSecrets)
		m.Spans.Selected = chosen
		m.Assembled, m.Requests = nil, nil
		m.indexRequests(dumps)
		m.assemble()
		if chosen == nil || m.Requests == nil {
			break
		}
		if m.Assembled.Measure(); m.opt.Pick.Suffices(m.Requests) {
			break
		}
	}
	for _, d := range m.Diags.All() {
		told.Add(d)
	}
	m.Diags, m.Spans.Diags = told, told
	if m.Requests != nil {
		m.Requests.Diags = told
	}
	return nil
}

// outline looks at the spans of a dump.
func (x *Source) outline(o *spantable.Outline) error {
	if c := x.Input.capture; c != nil {
		return c.Outline(x.asked().Name, o)
	}
	return x.Format.Outline(x.asked(), o)
}

// assemble makes requests of the spans, if there are any.
func (m *Loaded) assemble() {
	if m.Spans.Len() > 0 {
		m.Assembled = assembly.Consume(m.Spans)
		m.Requests = m.Assembled.Set
	}
}
