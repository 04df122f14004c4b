package verify

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// Counts are the numbers of things that are equal in file and model.
type Counts struct {
	Tracks, Slices, Instants, Samples, Flows int
	Args                                     int // of all events; elements of arrays and dictionaries don't count
}

// String lists the counts for people.
func (c Counts) String() string {
	text := fmt.Sprintf("%d slices, %d instants, %d samples, and %d arrows on %d tracks", c.Slices, c.Instants, c.Samples, c.Flows, c.Tracks)
	if c.Args > 0 {
		text += fmt.Sprintf(", with %d arguments", c.Args)
	}
	return text
}

// A model is the trace that a file is compared with. For each track and kind, files have events in the
// model's order, so one cursor each is enough.
type model struct {
	t      *trace.Trace
	names  []string // by symbol
	tracks []cursors
	flows  []trace.SliceID // of each arrow: the slice where the file begins it; 0 is none yet
	seen   []uint32        // by symbol: the last round in which an argument of that name was expected
	round  uint32
	Counts
}

// flowDone marks an arrow in model.flows whose ends were both found.
const flowDone = ^trace.SliceID(0)

// cursors point to the rows of a track that are still expected.
type cursors struct{ slices, instants, samples rows }

// rows is a range of rows of a table.
type rows struct{ next, end int }

func (r *rows) add(i int) {
	if r.end == 0 {
		r.next = i
	}
	r.end = i + 1
}

// take returns the next row; ok is false if there is none.
func (r *rows) take() (i int, ok bool) {
	if r.next == r.end {
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

func newModel(t *trace.Trace) (*model, error) {
	if err := trace.Validate(t); err != nil {
		return nil, fmt.Errorf("the model itself is not sound: %w", err)
	}
	names := t.Syms.Names()
	m := &model{t: t, names: names, tracks: make([]cursors, len(t.Tracks)), flows: make([]trace.SliceID, len(t.Flows)), seen: make([]uint32, len(names))}
	for i := 1; i < len(t.Slices); i++ {
		m.tracks[t.Slices[i].Track].slices.add(i)
	}
	for i := range t.Instants {
		m.tracks[t.Instants[i].Track].instants.add(i)
	}
	for i := range t.Samples {
		m.tracks[t.Samples[i].Track].samples.add(i)
	}
	return m, nil
}

// finish checks that the file lacks nothing of the model.
func (m *model) finish() error {
	for id := range m.tracks {
		c := &m.tracks[id]
		if i, ok := c.slices.take(); ok {
			s := &m.t.Slices[i]
			return m.differ(s.Track, "slice", s.Name, s.Time, "is not in the file")
		}
		if i, ok := c.instants.take(); ok {
			x := &m.t.Instants[i]
			return m.differ(x.Track, "instant", x.Name, x.Time, "is not in the file")
		}
		if i, ok := c.samples.take(); ok {
			x := &m.t.Samples[i]
			return m.differ(x.Track, "sample", 0, x.Time, "is not in the file")
		}
	}
	for i, at := range m.flows {
		if at != flowDone {
			f := &m.t.Flows[i]
			from := &m.t.Slices[f.From]
			return m.differ(from.Track, "arrow", f.Name, from.Time, "to %s is not in the file", m.place(m.t.Slices[f.To].Track))
		}
	}
	m.Flows = len(m.flows)
	return nil
}

// slice takes the next slice of a track and compares it with the file's start time and name.
func (m *model) slice(track trace.TrackID, at trace.Time, name string) (trace.SliceID, error) {
	i, ok := m.tracks[track].slices.take()
	if !ok {
		return 0, m.extra(track, "slice", at, name)
	}
	s := &m.t.Slices[i]
	switch {
	case !m.is(name, s.Name):
		return 0, m.differ(track, "slice", s.Name, s.Time, "is called %q in the file", name)
	case at != s.Time:
		return 0, m.differ(track, "slice", s.Name, s.Time, "begins %d ns later in the file", int64(at-s.Time))
	}
	m.Slices++
	return trace.SliceID(i), nil
}

// instant is like slice, for instants.
func (m *model) instant(track trace.TrackID, at trace.Time, name string) (*trace.Instant, error) {
	i, ok := m.tracks[track].instants.take()
	if !ok {
		return nil, m.extra(track, "instant", at, name)
	}
	x := &m.t.Instants[i]
	switch {
	case !m.is(name, x.Name):
		return nil, m.differ(track, "instant", x.Name, x.Time, "is called %q in the file", name)
	case at != x.Time:
		return nil, m.differ(track, "instant", x.Name, x.Time, "is %d ns later in the file", int64(at-x.Time))
	}
	m.Instants++
	return x, nil
}

// sample is like slice, for samples. A NaN equals a NaN.
func (m *model) sample(track trace.TrackID, at trace.Time, value float64) error {
	i, ok := m.tracks[track].samples.take()
	if !ok {
		return m.extra(track, "sample", at, "")
	}
	x := &m.t.Samples[i]
	switch {
	case !sameFloat(x.Value, value):
		return m.differ(track, "sample", 0, x.Time, "is %v in the file and %v in the model", value, x.Value)
	case at != x.Time:
		return m.differ(track, "sample", 0, x.Time, "is %d ns later in the file", int64(at-x.Time))
	}
	m.Samples++
	return nil
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }

// is reports whether the file's text is the name of a symbol. Invalid UTF-8 is written as U+FFFD.
func (m *model) is(text string, sym trace.Sym) bool {
	name := m.names[sym]
	return text == name || text == valid(name)
}

func valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// place describes a track by its path.
func (m *model) place(id trace.TrackID) string {
	return fmt.Sprintf("track %q", m.path(0, id))
}

// path joins the names of the tracks below from down to id.
func (m *model) path(from, id trace.TrackID) string {
	path := m.names[m.t.Tracks[id].Name]
	for up := m.t.Tracks[id].Parent; up != 0 && up != from; up = m.t.Tracks[up].Parent {
		path = m.names[m.t.Tracks[up].Name] + " > " + path
	}
	return path
}

// differ returns an error about a difference in an event of the model.
func (m *model) differ(track trace.TrackID, kind string, name trace.Sym, at trace.Time, format string, args ...any) error {
	return fmt.Errorf("%s: %s %q at %s (%d ns) %s", m.place(track), kind, m.names[name], at, int64(at), fmt.Sprintf(format, args...))
}

// extra returns an error about an event in the file that is not in the model.
func (m *model) extra(track trace.TrackID, kind string, at trace.Time, name string) error {
	return fmt.Errorf("%s: %s %q at %s (%d ns) is in the file, but not in the model", m.place(track), kind, name, at, int64(at))
}

// expected yields the arguments of an event as a viewer shows them: its own, then those of its subject.
// Only the first argument of each name counts.
func (m *model) expected(own, shared trace.ArgsID) func(yield func(trace.Arg) bool) {
	return func(yield func(trace.Arg) bool) {
		m.round++
		for _, id := range [...]trace.ArgsID{own, shared} {
			for a := range m.t.Args.All(id) {
				if m.seen[a.Key] == m.round {
					continue
				}
				m.seen[a.Key] = m.round
				if !yield(a) {
					return
				}
			}
		}
	}
}
