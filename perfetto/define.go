package perfetto

import (
	"cmp"
	"io"
	"slices"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/trace"
)

const (
	// definitionsSize is the size from which definitions are written as a packet.
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
		values:     newValues(0), sharedValues: newValues(len(t.Subjects)),
	}
}

// definitions writes packets with everything that can be interned before the first event: names, categories,
// and subjects. It leaves out arguments; reading them twice would cost more than everything else.
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

// defineNames defines the names of events. Every event refers to one, so the most frequent ones get the ids of
// one byte.
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

// subject defines the common part of the events of a subject.
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

// flushDefinitions writes a packet of definitions alone, if there are any.
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

// tracks writes a descriptor for every track, parents first. A track's uuid is
// its TrackID: uuids are scoped to the file, and small ones are short in every
// packet.
//
// All are plain tracks, without process or thread: trace_processor would join
// processes of equal pid, and containers repeat pids. Order below a parent is
// explicit. That of the roots cannot be: Perfetto sorts plain roots by name,
// and a descriptor of the implicit root (uuid 0) orders only processes and
// threads (viz/summary/track_event.sql).
func (e *encoder) tracks(w io.Writer) error {
	ranks, parents := siblingRanks(e.t.Tracks)
	for id := 1; id < len(e.t.Tracks); id++ {
		e.buf = appendTrack(e.buf[:0], trace.TrackID(id), &e.t.Tracks[id], e.names, ranks[id], parents[id])
		if _, err := w.Write(e.buf); err != nil {
			return err
		}
	}
	return nil
}

func appendTrack(b []byte, id trace.TrackID, track *trace.Track, names []string, rank int, isParent bool) []byte {
	b, packet := open(b, tracePacket)
	b, descriptor := open(b, packetTrackDescriptor)
	b = appendUint(b, descriptorUUID, uint64(id))
	b = appendString(b, descriptorName, validUTF8(names[track.Name]))
	if track.Parent != 0 {
		b = appendUint(b, descriptorParent, uint64(track.Parent))
	}
	if track.Desc != 0 {
		b = appendString(b, descriptorDescription, validUTF8(names[track.Desc]))
	}
	if track.Kind == trace.KindCounter {
		var counter int
		b, counter = open(b, descriptorCounter)
		if track.Unit != 0 {
			b = appendString(b, counterUnitName, validUTF8(names[track.Unit]))
		}
		b = shut(b, counter)
	}
	if isParent {
		b = appendUint(b, descriptorChildOrdering, childOrderingExplicit)
	}
	b = appendUint(b, descriptorSiblingRank, uint64(rank))
	// By default siblings of equal name become one row.
	b = appendUint(b, descriptorSiblingMerge, siblingMergeNone)
	return shut(shut(b, descriptor), packet)
}

// siblingRanks returns the position of every track among its siblings, by
// Order, then id, and whether it has children.
func siblingRanks(tracks []trace.Track) (ranks []int, parents []bool) {
	order := make([]int, len(tracks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &tracks[i], &tracks[j]
		return cmp.Or(cmp.Compare(x.Parent, y.Parent), cmp.Compare(x.Order, y.Order))
	})
	ranks, parents = make([]int, len(tracks)), make([]bool, len(tracks))
	rank, parent := 0, trace.TrackID(0)
	for _, i := range order {
		if i == 0 {
			continue
		}
		if tracks[i].Parent != parent {
			rank, parent = 0, tracks[i].Parent
		}
		ranks[i] = rank
		parents[parent] = true
		rank++
	}
	return ranks, parents
}
