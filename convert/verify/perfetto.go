package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/perfetto/reader"
	"github.com/sgtrace/sgtrace/trace"
)

// Perfetto compares a native Perfetto trace with the model that it was written from. It returns how
// much compared equal, or the first difference.
func Perfetto(r io.Reader, t *trace.Trace) (Counts, error) {
	m, err := newModel(t)
	if err != nil {
		return Counts{}, err
	}
	first, _, _ := t.Bounds()
	p := &perfettoFile{model: m, first: first, declared: make([]bool, len(t.Tracks)), open: make([][]trace.SliceID, len(t.Tracks))}
	p.ranks, p.parents = siblings(t.Tracks)
	for packet, err := range reader.Packets(r) {
		if err != nil {
			return Counts{}, err
		}
		if err := p.packet(packet); err != nil {
			return Counts{}, fmt.Errorf("packet at byte %d: %w", packet.Offset, err)
		}
	}
	if err := p.finish(); err != nil {
		return Counts{}, err
	}
	return m.Counts, nil
}

// A perfettoFile is a Perfetto file being compared.
type perfettoFile struct {
	*model
	first     trace.Time
	declared  []bool // by track
	described int    // number of attributes seen
	ranks     []int  // by track: its position among its siblings
	parents   []bool // by track: whether it has children
	open      [][]trace.SliceID
}

func (p *perfettoFile) packet(x reader.Packet) error {
	if x.Track != nil {
		return p.track(x.Track)
	}
	if x.Start != nil && *x.Start != int64(p.first) {
		return fmt.Errorf("times count from %d; the model begins at %d", *x.Start, int64(p.first))
	}
	if err := p.known(x.Declared); err != nil {
		return err
	}
	for _, a := range x.Attributes {
		if err := p.attribute(p.described, a.Key, a.Value); err != nil {
			return err
		}
		p.described++
	}
	if x.Event != nil {
		return p.event(x.Event)
	}
	return nil
}

// known checks that the model has all arguments that a file declares.
func (p *perfettoFile) known(declared []string) error {
	if len(declared) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, name := range p.names {
		known[reader.Pathless(name)] = true
	}
	for _, name := range declared {
		if !known[name] {
			return fmt.Errorf("argument %q is declared, but not in the model", name)
		}
	}
	return nil
}

// attribute compares attribute i of the trace.
func (m *model) attribute(i int, key, value string) error {
	if i >= len(m.t.Attributes) {
		return fmt.Errorf("attribute %q is in the file, but not in the model", key)
	}
	if a := m.t.Attributes[i]; key != valid(a.Key) || value != valid(a.Value) {
		return fmt.Errorf("attribute %q is %q in the file; the model has %q, %q", key, value, a.Key, a.Value)
	}
	return nil
}

// finish checks that nothing is missing from the file.
func (p *perfettoFile) finish() error {
	for id := 1; id < len(p.declared); id++ {
		if !p.declared[id] {
			return fmt.Errorf("%s is not in the file", p.place(trace.TrackID(id)))
		}
		if open := p.open[id]; len(open) > 0 {
			s := &p.t.Slices[open[len(open)-1]]
			return p.differ(s.Track, "slice", s.Name, s.Time, "has no end in the file")
		}
	}
	if p.described != len(p.t.Attributes) {
		return fmt.Errorf("%d attributes are in the file, and %d in the model", p.described, len(p.t.Attributes))
	}
	p.Tracks = len(p.declared) - 1
	return p.model.finish()
}

// track compares a track. Its uuid is its number in the model.
func (p *perfettoFile) track(x *reader.Track) error {
	if x.UUID >= uint64(len(p.declared)) {
		return fmt.Errorf("track %d is not in the model", x.UUID)
	}
	id := trace.TrackID(x.UUID)
	p.declared[id] = true
	track := &p.t.Tracks[id]
	switch {
	case !p.is(x.Name, track.Name) || !p.is(x.Desc, track.Desc):
		return fmt.Errorf("%s is called %q (%q) in the file", p.place(id), x.Name, x.Desc)
	case x.Parent != uint64(track.Parent):
		return fmt.Errorf("%s has another parent in the file", p.place(id))
	case x.Counter != (track.Kind == trace.KindCounter) || x.Counter && !p.is(x.Unit, track.Unit):
		return fmt.Errorf("%s counts something else in the file", p.place(id))
	case x.Rank != p.ranks[id] || x.Explicit != p.parents[id]:
		return fmt.Errorf("%s is at another place among its siblings in the file", p.place(id))
	}
	return nil
}

// siblings returns, by TrackID, the position of every track among its siblings (by Order, then ID), and
// whether it has children.
func siblings(tracks []trace.Track) (ranks []int, parents []bool) {
	ranks, parents = make([]int, len(tracks)), make([]bool, len(tracks))
	for parent, ids := range childrenOf(tracks) {
		parents[parent] = len(ids) > 0
		for rank, id := range ids {
			ranks[id] = rank
		}
	}
	return ranks, parents
}

// childrenOf returns the children of every track in viewer order; those of 0 are the tracks without a
// parent.
func childrenOf(tracks []trace.Track) [][]trace.TrackID {
	children := make([][]trace.TrackID, len(tracks))
	for id := 1; id < len(tracks); id++ {
		parent := tracks[id].Parent
		children[parent] = append(children[parent], trace.TrackID(id))
	}
	for _, ids := range children {
		slices.SortFunc(ids, func(a, b trace.TrackID) int {
			return cmp.Or(cmp.Compare(tracks[a].Order, tracks[b].Order), cmp.Compare(a, b))
		})
	}
	return children
}

func (p *perfettoFile) event(e *reader.Event) error {
	if e.Track >= uint64(len(p.declared)) {
		return fmt.Errorf("event on track %d, which is not in the model", e.Track)
	}
	track := trace.TrackID(e.Track)
	switch e.Kind {
	case reader.Begin:
		return p.begin(track, e)
	case reader.End:
		return p.end(track, e)
	case reader.Instant:
		x, err := p.instant(track, trace.Time(e.Time), e.Name)
		if err != nil {
			return err
		}
		if err := p.args(e, x.Args, 0); err != nil {
			return p.differ(track, "instant", x.Name, x.Time, "has other arguments: %v", err)
		}
		return nil
	}
	return p.sample(track, trace.Time(e.Time), e.Value)
}

func (p *perfettoFile) begin(track trace.TrackID, e *reader.Event) error {
	id, err := p.slice(track, trace.Time(e.Time), e.Name)
	if err != nil {
		return err
	}
	s := &p.t.Slices[id]
	if open := p.open[track]; len(open) > 0 && p.t.Slices[open[len(open)-1]].End() <= s.Time {
		return p.differ(track, "slice", s.Name, s.Time, "begins in the file before its neighbor ends")
	}
	p.open[track] = append(p.open[track], id)
	about := &p.t.Subjects[p.t.About[id]]
	switch {
	case !p.is(e.Category, s.Cat):
		return p.differ(track, "slice", s.Name, s.Time, "has the category %q in the file and %q in the model", e.Category, p.names[s.Cat])
	case !p.is(e.Correlation, about.ID):
		return p.differ(track, "slice", s.Name, s.Time, "is about %q in the file and %q in the model", e.Correlation, p.names[about.ID])
	}
	if err := p.args(e, s.Args, about.Args); err != nil {
		return p.differ(track, "slice", s.Name, s.Time, "has other arguments: %v", err)
	}
	return p.arrows(id, e)
}

func (p *perfettoFile) end(track trace.TrackID, e *reader.Event) error {
	open, at := p.open[track], trace.Time(e.Time)
	if len(open) == 0 {
		return p.extra(track, "end of a slice", at, "")
	}
	id := open[len(open)-1]
	p.open[track] = open[:len(open)-1]
	if s := &p.t.Slices[id]; at != s.End() {
		return p.differ(track, "slice", s.Name, s.Time, "lasts %d ns in the file and %d ns in the model", int64(at-s.Time), s.Dur)
	}
	return p.arrows(id, e)
}

// arrows compares the ends of arrows at the beginning or end of a slice. Arrow i of the model has the ID
// i+1. trace_processor draws an arrow from the end that comes first in the file, and reverses it if that
// slice starts later.
func (p *perfettoFile) arrows(id trace.SliceID, e *reader.Event) error {
	for i, n := range slices.Concat(e.Opens, e.Ends) {
		opens := i < len(e.Opens)
		if n == 0 || n > uint64(len(p.flows)) {
			return fmt.Errorf("arrow %d is in the file, but not in the model", n)
		}
		flow, begun := &p.t.Flows[n-1], &p.flows[n-1]
		s := &p.t.Slices[id]
		switch {
		case opens != (*begun == 0) || *begun == flowDone:
			return p.differ(s.Track, "slice", s.Name, s.Time, "has an end of arrow %d that does not fit the other one", n)
		case opens:
			*begun = id
		case !p.joins(flow, *begun, id):
			return p.differ(s.Track, "slice", s.Name, s.Time, "ends arrow %d (%q), which joins other slices in the model", n, p.names[flow.Name])
		default:
			*begun = flowDone
		}
	}
	return nil
}

// joins reports whether a viewer draws flow as in the model if the file names slice first, then second. An
// arrow that points back in time cannot keep its direction, nor can one to a slice of zero duration that
// comes first in the file.
func (p *perfettoFile) joins(flow *trace.Flow, first, second trace.SliceID) bool {
	from, to := &p.t.Slices[flow.From], &p.t.Slices[flow.To]
	if first == flow.From && second == flow.To {
		return from.Time <= to.Time
	}
	return first == flow.To && second == flow.From && (to.Time < from.Time || to.Time == from.Time && to.Dur == 0)
}

// args compares typed and other arguments with those of the model; each kind is in order.
func (p *perfettoFile) args(e *reader.Event, own, shared trace.ArgsID) error {
	typed, others := e.Typed, e.Args
	for a := range p.expected(own, shared) {
		var x reader.Arg
		switch {
		case len(typed) > 0 && (p.is(typed[0].Name, a.Key) || typed[0].Name == reader.Pathless(p.names[a.Key])):
			x, typed = typed[0], typed[1:]
		case len(others) > 0 && p.named(others[0], a):
			x, others = others[0], others[1:]
		default:
			return fmt.Errorf("%q is missing, or at another place", p.names[a.Key])
		}
		if err := p.value(x, a); err != nil {
			return fmt.Errorf("%q: %w", p.names[a.Key], err)
		}
		p.Args++
	}
	if len(typed)+len(others) > 0 {
		return errors.New("there are more in the file")
	}
	return nil
}

// named reports whether x has the name of a. Files replace an empty name by "_".
func (p *perfettoFile) named(x reader.Arg, a trace.Arg) bool {
	return p.is(x.Name, a.Key) || x.Name == "_" && p.names[a.Key] == ""
}

// value compares the value of an argument. Files write empty arrays and dictionaries as text.
func (p *perfettoFile) value(x reader.Arg, a trace.Arg) error {
	n := 0
	if a.Kind == trace.ArgArray || a.Kind == trace.ArgDict {
		for e := range a.Elems {
			if n == len(x.Elems) || x.Kind != a.Kind || a.Kind == trace.ArgDict && !p.named(x.Elems[n], e) {
				return errors.New("elements are missing in the file")
			}
			if err := p.value(x.Elems[n], e); err != nil {
				return err
			}
			n++
		}
	}
	switch {
	case n < len(x.Elems):
		return errors.New("it has more elements in the file")
	case n > 0:
		return nil
	case a.Kind == trace.ArgArray:
		return equalText(x, "[]")
	case a.Kind == trace.ArgDict:
		return equalText(x, "{}")
	case a.Kind == trace.ArgString:
		return equalText(x, string(a.Bytes()))
	case x.Kind != a.Kind || x.Bits != bitsOf(a):
		return errors.New("its value is another one")
	}
	return nil
}

// bitsOf returns a value other than text in the bit representation of its field.
func bitsOf(a trace.Arg) uint64 {
	switch a.Kind {
	case trace.ArgFloat:
		return math.Float64bits(a.Float())
	case trace.ArgBool:
		if a.Bool() {
			return 1
		}
		return 0
	case trace.ArgInt:
		return uint64(a.Int())
	}
	return a.Uint()
}

func equalText(x reader.Arg, want string) error {
	if x.Kind != trace.ArgString {
		return errors.New("it is no text in the file")
	}
	if string(x.Text) != want && string(x.Text) != valid(want) {
		return fmt.Errorf("%q in the file, %q in the model", cut(string(x.Text)), cut(want))
	}
	return nil
}

// cut shortens text for a message.
func cut(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
