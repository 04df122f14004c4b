package rows

import (
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// MarkKind is the kind of an annotation.
type MarkKind uint8

const (
	MarkInstant  MarkKind = iota // a point in time
	MarkPushPop                  // a range that nests with other ranges of its thread
	MarkStartEnd                 // a range that may overlap others and end on another thread
)

// A Range is an NVTX annotation: a range, or a mark. 48 bytes.
type Range struct {
	Start, End trace.Time // equal for a mark
	PID, TID   int32      // where it began; -1 is unknown
	Text       trace.Sym
	Domain     trace.Sym // name of the domain; 0 is the default one, or one whose creation was not recorded
	Category   trace.Sym // name of the category; 0 is none, or one without a name
	// Args are values attached by NCCL and others, from JSON or binary payloads.
	Args trace.ArgsID
	Kind MarkKind
	// Open means that the range was never closed: its End is that of the session, and its duration is meaningless.
	Open bool
}

const (
	nvtxStart = iota
	nvtxEnd
	nvtxType
	nvtxTID
	nvtxText
	nvtxTextID
	nvtxDomain
	nvtxCategory
	nvtxJSON
	nvtxJSONID
	nvtxBinary
)

var nvtxTable = tableSpec{
	names: []string{"NVTX_EVENTS"},
	columns: []column{
		nvtxStart:    {name: "start", need: true},
		nvtxEnd:      {name: "end"},
		nvtxType:     {name: "eventType", need: true},
		nvtxTID:      {name: "globalTid", none: noID},
		nvtxText:     {name: "text"},
		nvtxTextID:   {name: "textId"},
		nvtxDomain:   {name: "domainId"},
		nvtxCategory: {name: "category"},
		nvtxJSON:     {name: "jsonText", detail: true},
		nvtxJSONID:   {name: "jsonTextId", detail: true},
		nvtxBinary:   {name: "binaryData", detail: true},
	},
}

// Kinds of events. The numbers are the same in all versions.
const (
	eventCategory     = 33
	eventMark         = 34
	eventThread       = 39
	eventPushPop      = 59
	eventStartEnd     = 60
	eventTextPushPop  = 70 // imported from a text file
	eventTextStartEnd = 71
	eventDomain       = 75
	eventDomainEnd    = 76
)

// A scope is a domain or a category of a process, whose ids are local to the process.
type scope struct {
	pid        int32
	domain, id int64
}

// nvtxNames are the names that events give to domains, categories, and threads.
type nvtxNames struct {
	domains    map[scope]trace.Sym
	categories map[scope]trace.Sym
	threads    []Thread
	payloads   map[payloadKey][]payloadEntry
}

// nvtxOnce reads the names once.
type nvtxOnce struct {
	once  sync.Once
	names nvtxNames
}

// nvtxNames reads the events that name domains, categories, and threads, which may be anywhere in the table.
// SQLite could select them, but a damaged file may lead it in circles while it searches; this scan counts every
// row.
func (s *Source) nvtxNames() *nvtxNames {
	s.nvtx.once.Do(func() {
		n := &s.nvtx.names
		n.domains, n.categories = map[scope]trace.Sym{}, map[scope]trace.Sym{}
		spec := nvtxTable
		spec.quiet = true
		spec.columns = spec.columns[:nvtxCategory+1]
		s.scan(&spec, func(c *cursor) bool {
			kind := c.int(nvtxType)
			if kind != eventDomain && kind != eventCategory && kind != eventThread {
				return true
			}
			id := c.int(nvtxTID)
			text := c.nvtxText()
			key := scope{pidOf(id), c.int(nvtxDomain), 0}
			switch kind {
			case eventDomain:
				n.domains[key] = text
			case eventCategory:
				key.id = c.int(nvtxCategory)
				n.categories[key] = text
			case eventThread:
				n.threads = append(n.threads, Thread{key.pid, tidOf(id), s.Options.Syms.Name(text)})
			}
			return true
		})
		n.payloads = s.readPayloads()
	})
	return &s.nvtx.names
}

// nvtxText returns the text of an event. Registered strings are in StringIds; empty texts are not stored.
func (c *cursor) nvtxText() trace.Sym {
	if c.null(nvtxText) {
		return c.name(nvtxTextID)
	}
	return c.textSym(nvtxText)
}

// Ranges yields NVTX ranges and marks.
func (w *Window) Ranges(yield func(*Range) bool) {
	s := w.Source
	if s.find(nvtxTable.names[0]) == "" {
		return
	}
	n := s.nvtxNames()
	end := s.Meta.SessionStart + trace.Time(s.Meta.Duration)
	var p payloads
	p.init(s, n)
	var r Range
	s.scan(w.bounded(&nvtxTable), func(c *cursor) bool {
		kind, ok := s.markKind(c.int(nvtxType), c.sel.table)
		if !ok {
			return true
		}
		id := c.int(nvtxTID)
		r = Range{
			Start: c.time(nvtxStart), Kind: kind, PID: pidOf(id), TID: tidOf(id), Text: c.nvtxText(),
		}
		domain := c.int(nvtxDomain)
		r.Domain = n.domains[scope{r.PID, domain, 0}]
		if category := uint32(c.int(nvtxCategory)); category != 0 {
			r.Category = n.categories[scope{r.PID, domain, int64(category)}]
		}
		r.end(c, end, s.Meta.Duration >= 0)
		if !s.Options.Brief {
			r.Args = p.args(c, domain)
		}
		return yield(&r)
	})
}

// end sets the end of the range. Ranges that were never closed are exported with the end of the session.
func (r *Range) end(c *cursor, session trace.Time, known bool) {
	if r.Kind == MarkInstant {
		r.End = r.Start
		return
	}
	r.End = c.time(nvtxEnd)
	if c.null(nvtxEnd) {
		r.End, r.Open = r.Start, true
		if known {
			r.End = max(r.Start, session)
		}
		return
	}
	r.Open = known && r.End == session
}

// markKind translates the kind of an event; ok is false for events that are not annotations.
func (s *Source) markKind(kind int64, table string) (MarkKind, bool) {
	switch kind {
	case eventPushPop, eventTextPushPop:
		return MarkPushPop, true
	case eventStartEnd, eventTextStartEnd:
		return MarkStartEnd, true
	case eventMark:
		return MarkInstant, true
	case eventCategory, eventThread, eventDomain, eventDomainEnd:
		return 0, false // these define names
	}
	s.Diag(trace.NsysNVTXKind, table, 0, kind)
	return 0, false
}

// NamedThreads returns the threads that name themselves through NVTX.
func (s *Source) NamedThreads() []Thread {
	if s.find(nvtxTable.names[0]) == "" {
		return nil
	}
	return s.nvtxNames().threads
}
