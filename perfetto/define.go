package perfetto

import (
	"cmp"
	"io"
	"slices"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/trace"
)

const (
	// definitionsSize is the size from which definitions make a packet.
	definitionsSize = 16 << 10
	// sharedBlock is the size of the blocks for encoded arguments of subjects.
	sharedBlock = 16 << 10
)

func newTables(t *trace.Trace) *tables {
	names := t.Syms.Names()
	return &tables{
		t: t, names: names,
		eventNames: newDictionary(internedNames, len(names)),
		categories: newDictionary(internedCategories, len(names)),
		subjects:   newDictionary(internedCorrelationIDs, len(names)),
		shared:     make([][]byte, len(t.Subjects)),
		inShared:   make([]bool, len(names)),
		fields:     typedFields(names),
		argNames:   argNames{refs: make([]atomic.Uint32, len(names))},
		values:     newValues(),
	}
}

// definitions writes packets with all that can be interned before the first
// event: names, categories and subjects. Arguments are not looked at; reading
// them twice would cost more than all the rest.
func (e *encoder) definitions(w io.Writer) error {
	if err := e.defineNames(w); err != nil {
		return err
	}
	for i := range e.t.AllSlices() {
		s := &e.t.Slices[i]
		if s.Cat != 0 && e.categories.ids[s.Cat] == 0 {
			e.defs = e.categories.define(e.defs, s.Cat, e.names[s.Cat])
		}
		if about := e.t.About[i]; about != 0 && e.shared[about] == nil {
			e.subject(about)
		}
		if len(e.defs) >= definitionsSize {
			if err := e.flushDefinitions(w); err != nil {
				return err
			}
		}
	}
	return e.flushDefinitions(w)
}

// defineNames defines the names of events. Every event refers to one, so those
// that most events have get the ids of one byte.
func (e *encoder) defineNames(w io.Writer) error {
	uses := make([]uint32, len(e.names))
	var used []trace.Sym // in the order of first use
	count := func(name trace.Sym) {
		if uses[name]++; uses[name] == 1 {
			used = append(used, name)
		}
	}
	for i := range e.t.AllSlices() {
		count(e.t.Slices[i].Name)
	}
	for i := range e.t.AllInstants() {
		count(e.t.Instants[i].Name)
	}
	slices.SortStableFunc(used, func(a, b trace.Sym) int { return cmp.Compare(uses[b], uses[a]) })
	for _, name := range used {
		e.defs = e.eventNames.define(e.defs, name, e.names[name])
		if len(e.defs) >= definitionsSize {
			if err := e.flushDefinitions(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// subject defines what the events of a subject have in common.
func (e *encoder) subject(about trace.SubjectID) {
	s := &e.t.Subjects[about]
	if s.ID != 0 {
		e.defs = e.subjects.define(e.defs, s.ID, e.names[s.ID])
	}
	for a := range e.t.Args.All(s.Args) {
		e.inShared[a.Key] = true
	}
	e.round++
	e.buf = e.subjectAnnotations(e.buf[:0], about)
	if e.room == nil || len(e.room)+len(e.buf) > cap(e.room) {
		e.room = make([]byte, 0, max(sharedBlock, len(e.buf)))
	}
	from := len(e.room)
	e.room = append(e.room, e.buf...)
	e.shared[about] = e.room[from:len(e.room):len(e.room)] // not nil
}

// flushDefinitions writes a packet of definitions only, if there are any.
func (e *encoder) flushDefinitions(w io.Writer) error {
	if len(e.defs) == 0 {
		return nil
	}
	b, packet := open(e.packet[:0], tracePacket)
	b = appendUint(b, packetSequenceID, sequenceID)
	b = appendString(b, packetInternedData, e.defs)
	e.defs = e.defs[:0]
	e.packet = shut(b, packet)
	_, err := w.Write(e.packet)
	return err
}
