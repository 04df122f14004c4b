package chrometrace

import (
	"fmt"
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// bufferSize is the amount of output that is written in one piece.
const bufferSize = 256 << 10

// Write writes t, a finished trace, to w as one JSON object, its events ordered
// by time, one per line. It returns the first error of w.
//
// Invalid UTF-8 in names and arguments is written as U+FFFD; NaN, infinities
// and integers past int64 are written as strings.
func Write(w io.Writer, t *trace.Trace) error {
	e := newEncoder(w, t)
	e.header()
	e.layoutEvents()
	e.merge(e.event)
	e.buf = append(e.buf, "\n]}\n"...)
	e.flush()
	return e.err
}

// encoder turns events into JSON.
type encoder struct {
	w   io.Writer
	err error // of the first failed write; nothing is written after it
	buf []byte
	sep string // between the last event and the next one

	t      *trace.Trace
	base   trace.Time // of the first event; times are written relative to it
	coarse bool       // times are written in whole microseconds
	names  []string   // of the symbols of t
	quoted []string   // the same as JSON strings, made on first use
	layout layout
	places []string // by TrackID: the members that say where an event goes
	arrows arrows

	// seen holds, by symbol, the round in which an argument with that name was last written; each event is a round.
	seen  []uint32
	round uint32
}

func newEncoder(w io.Writer, t *trace.Trace) *encoder {
	names := t.Syms.Names()
	e := &encoder{
		w: w, buf: make([]byte, 0, bufferSize+bufferSize/8), sep: "\n",
		t: t, names: names, quoted: make([]string, len(names)),
		layout: newLayout(t, names),
		places: make([]string, len(t.Tracks)),
		arrows: newArrows(t),
		seen:   make([]uint32, len(names)),
	}
	first, last, _ := t.Bounds()
	e.base, e.coarse = first, last-first > MaxExact
	for id, p := range e.layout.places {
		e.places[id] = p.members()
	}
	return e
}

// flush writes the buffer.
func (e *encoder) flush() {
	if e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// quote returns the name of sym as a JSON string.
func (e *encoder) quote(sym trace.Sym) string {
	if e.quoted[sym] == "" {
		e.quoted[sym] = quote(e.names[sym])
	}
	return e.quoted[sym]
}

// header writes the description of the trace and starts the list of events. It comes before the events, so that
// a reader has the base in time in one pass. PyTorch's profiler calls the base baseTimeNanoseconds.
func (e *encoder) header() {
	e.buf = fmt.Appendf(e.buf, `{"displayTimeUnit":"ns","baseTimeNanoseconds":%d,"metadata":{"base_time_ns":"%[1]d","base_time":"%s"`,
		int64(e.base), e.base)
	for _, a := range e.t.Attributes {
		e.buf = fmt.Appendf(e.buf, ",%s:%s", quote(a.Key), quote(a.Value))
	}
	e.buf = append(e.buf, `},"traceEvents":[`...)
}

// open starts an event of the given phase; [encoder.shut] ends it.
func (e *encoder) open(phase byte) []byte {
	b := append(append(e.buf, e.sep...), `{"ph":"`...)
	e.sep = ",\n"
	return append(b, phase, '"')
}

// shut ends an event.
func (e *encoder) shut(b []byte) {
	if e.buf = append(b, '}'); len(e.buf) >= bufferSize {
		e.flush()
	}
}

// layoutEvents names processes and threads and fixes their order.
func (e *encoder) layoutEvents() {
	for i, p := range e.layout.processes {
		rank := rankOf(e.t.Tracks, p.track, e.names)
		e.layoutEvent("process", place{pid: i + 1}.members(), p.name+rankMembers(rank, e.names), i+1)
		for _, id := range p.threads {
			at := &e.layout.places[id]
			name := at.name
			if rank != nil {
				name += rowMembers(&e.t.Tracks[id])
			}
			e.layoutEvent("thread", e.places[id], name, at.tid)
		}
	}
}

func (e *encoder) layoutEvent(what, where, name string, rank int) {
	e.shut(fmt.Appendf(e.open('M'), `,"name":"%s_name"%s,"args":{"name":%s}`, what, where, name))
	e.shut(fmt.Appendf(e.open('M'), `,"name":"%s_sort_index"%s,"args":{"sort_index":%d}`, what, where, rank))
}

// event writes row i of a table.
func (e *encoder) event(k kind, i uint32) {
	switch k {
	case slice:
		e.slice(trace.SliceID(i))
	case arrow:
		e.arrow(e.arrows.ends[i])
	case instant:
		in := &e.t.Instants[i]
		b := e.members('i', `"instant"`, e.quote(in.Name), in.Track, in.Time)
		b = append(b, `,"s":"t"`...)
		e.shut(e.appendArgs(b, in.Args, 0))
	case sample:
		e.sample(&e.t.Samples[i])
	}
}

// members starts an event with the members that all events have.
func (e *encoder) members(phase byte, cat, name string, track trace.TrackID, at trace.Time) []byte {
	b := append(append(e.open(phase), `,"cat":`...), cat...)
	b = append(append(b, `,"name":`...), name...)
	b = append(append(b, e.places[track]...), `,"ts":`...)
	return appendMicros(b, e.since(at))
}

// MaxExact is the length in ns, 104 days, up to which the nanoseconds of a trace
// survive: importers read microseconds as a float64, with 53 bits. Longer traces
// are written in whole microseconds.
const MaxExact = 1 << 53

// since returns a time relative to the base, in ns. In a long trace it rounds to whole microseconds: importers
// would round anyway, but each event separately, so that slices would no longer nest.
func (e *encoder) since(t trace.Time) uint64 {
	ns := uint64(t - e.base)
	if e.coarse {
		ns -= ns % 1000
	}
	return ns
}

func (e *encoder) slice(id trace.SliceID) {
	s := &e.t.Slices[id]
	cat := `"slice"` // the format requires a category
	if s.Cat != 0 {
		cat = e.quote(s.Cat)
	}
	b := e.members('X', cat, e.quote(s.Name), s.Track, s.Time)
	b = appendMicros(append(b, `,"dur":`...), e.since(s.End())-e.since(s.Time))
	if bind, ok := e.arrows.binds[id]; ok {
		b = strconv.AppendInt(append(b, `,"bind_id":`...), int64(bind.id), 10)
		if bind.out {
			b = append(b, `,"flow_out":true`...)
		} else {
			b = append(b, `,"flow_in":true`...)
		}
	}
	e.shut(e.appendArgs(b, s.Args, e.t.Subjects[e.t.About[id]].Args))
}

func (e *encoder) arrow(end arrowEnd) {
	s := &e.t.Slices[end.slice]
	name := `"flow"`
	if sym := e.t.Flows[end.flow].Name; sym != 0 {
		name = e.quote(sym)
	}
	b := e.members(end.phase, `"flow"`, name, s.Track, s.Time)
	b = strconv.AppendUint(append(b, `,"id":`...), uint64(end.flow)+1, 10)
	e.shut(append(b, `,"bp":"e"`...))
}

// sample writes a value of a counter. Viewers show "name unit".
func (e *encoder) sample(s *trace.Sample) {
	b := e.members('C', `"counter"`, e.layout.places[s.Track].name, s.Track, s.Time)
	unit := `"value"`
	if sym := e.t.Tracks[s.Track].Unit; sym != 0 {
		unit = e.quote(sym)
	}
	b = append(append(append(b, `,"args":{`...), unit...), ':')
	e.shut(append(appendFloat(b, s.Value), '}'))
}

// kind is the table that a run of rows is in. At equal times, slices come first: importers attach the ends of
// arrows to slices that they have seen, but not to instants.
type kind uint32

const (
	slice kind = iota
	arrow      // index into arrows.ends
	instant
	sample
)

// run is a stretch of a table whose rows are ordered by time.
type run struct {
	time      trace.Time // of row next
	kind      kind
	next, end uint32
}

// before orders runs by their next rows, then by kind; rows of one kind by
// their place in the table, which is by track.
func (r *run) before(o *run) bool {
	if r.time != o.time {
		return r.time < o.time
	}
	if r.kind != o.kind {
		return r.kind < o.kind
	}
	return r.next < o.next
}

// merge calls visit for every row of every table of events, ordered by time, up
// to the first failed write.
func (e *encoder) merge(visit func(kind, uint32)) {
	heap := e.runs()
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for len(heap) > 0 && e.err == nil {
		top := &heap[0]
		visit(top.kind, top.next)
		if top.next++; top.next < top.end {
			top.time = e.timeOf(top.kind, top.next)
		} else {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(heap, 0)
	}
}

// sink moves heap[i] down to where no child is before it.
func sink(heap []run, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child+1].before(&heap[child]) {
			child++
		}
		if !heap[child].before(&heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// runs cuts the tables where the track changes.
func (e *encoder) runs() (runs []run) {
	add := func(k kind, n int, track func(i int) trace.TrackID, from int) {
		for i := from; i < n; i++ {
			if i == from || track(i) != track(i-1) {
				runs = append(runs, run{e.timeOf(k, uint32(i)), k, uint32(i), uint32(i)})
			}
			runs[len(runs)-1].end++
		}
	}
	t := e.t
	add(slice, len(t.Slices), func(i int) trace.TrackID { return t.Slices[i].Track }, 1)
	add(arrow, len(e.arrows.ends), func(int) trace.TrackID { return 0 }, 0)
	add(instant, len(t.Instants), func(i int) trace.TrackID { return t.Instants[i].Track }, 0)
	add(sample, len(t.Samples), func(i int) trace.TrackID { return t.Samples[i].Track }, 0)
	return runs
}

func (e *encoder) timeOf(k kind, i uint32) trace.Time {
	switch k {
	case slice:
		return e.t.Slices[i].Time
	case arrow:
		return e.t.Slices[e.arrows.ends[i].slice].Time
	case instant:
		return e.t.Instants[i].Time
	default:
		return e.t.Samples[i].Time
	}
}
