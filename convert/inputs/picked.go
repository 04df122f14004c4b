package inputs

import (
	"fmt"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// leastPicked is the size of dumps, in bytes on disk, from which they are outlined before they are read:
// smaller dumps are read instantly.
var leastPicked = int64(8 << 20)

// canPick reports whether all dumps can be outlined, and may be large enough that outlining pays off. The
// size of a pipe is unknown.
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

// size returns the size of a dump on disk, or of what came through a pipe, in bytes.
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

// indexPicked reads the traces that Options.Pick chooses from the dumps, and reads again with more if they
// are not enough. Only problems of the last reading are reported. Pipes are spooled until then.
func (m *Loaded) indexPicked(dumps []*Source) error {
	o, size := spantable.NewOutline(m.opt.Pick.Prescan()), int64(0)
	for _, x := range dumps {
		if x.Once {
			x.spool = new(memory.Spool)
			defer x.close()
		}
		// Errors are reported when the dump is read.
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

// indexSelected is the part of indexPicked after outlining.
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

// outline scans the spans of a dump.
func (x *Source) outline(o *spantable.Outline) error {
	if c := x.Input.capture; c != nil {
		return c.Outline(x.asked().Name, o)
	}
	return x.Format.Outline(x.asked(), o)
}

// assemble makes requests from the spans, if there are any.
func (m *Loaded) assemble() {
	if m.Spans.Len() > 0 {
		m.Assembled = assembly.Consume(m.Spans)
		m.Requests = m.Assembled.Set
	}
}
