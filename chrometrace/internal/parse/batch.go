package parse

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Batch is what a parser made of a piece of input, from at most one document. Its records refer to events and
// rows of the batch; package chrometrace converts them to those of the file.
type Batch struct {
	NewDoc bool // a document begins with this batch
	Object bool // it is an object, not a bare list, so that a missing end shows
	// Chrome means that the batch is certainly from a Chrome trace: it has a list of events, or an event.
	Chrome bool
	Header []Member
	Rows   []*RowID
	Names  []RowName
	Tables
	Open []Span // begin and end events, in order
	Diags
	Total    int
	Linked   bool // some events have correlations
	External bool // some correlations are [ByExternal]
	Drawn    bool // our writer wrote arrows from launches
	// Bounds of events whose time is absolute, relative, and exactly 0, which in a file of Kineto is invalid.
	Absolute, Relative, Zero Bounds
	ZeroAt                   int64 // offset of the first event at time 0
	Window                   Window
}

// Tables are lists of a [profile.Profile].
type Tables struct {
	Events      []profile.Slice
	Instants    []profile.Instant
	Samples     []profile.CounterSample
	Arrows      []profile.Arrow
	Redundant   []profile.Arrow // useless if any event has a correlation
	Launches    []profile.Launch
	Grids       []profile.KernelGrid
	Collectives []profile.Collective
	Peers       []PeerTask
	Steps       []profile.Step
	Prints      []profile.Fingerprint // for the fingerprint
	Asked       []profile.CollectiveAnnotation
	Callers     []profile.CollectiveAnnotation // operators that pass a collective to a process group
	Syncs       []profile.CollectiveAnnotation // calls that wait for a device, on threads started by libraries
}

// A PeerTask is a part of a collective in which one rank of its group sends something to another, or waits for it.
type PeerTask struct {
	Row      int32
	Time     trace.Time
	Dur      int64
	From, To int64
	Name     trace.Sym
}

// A Member is a key of a document with its value, as text.
type Member struct {
	Key    string
	Value  []byte
	Offset int64
}

// A Window is the end of the recording of a document; 0 is unknown.
type Window struct {
	Told trace.Time // from the instant that libkineto writes at the end
	Seen trace.Time // from events: the latest start of any event, or end of device work or a call
}

// Merge adds the window of another part of the document.
func (w *Window) Merge(o Window) {
	w.Told, w.Seen = max(w.Told, o.Told), max(w.Seen, o.Seen)
}

// Bounds are the first and the last instant of n events.
type Bounds struct {
	First, Last trace.Time
	N           int
}

// Add adds an event.
func (b *Bounds) Add(from, to trace.Time) {
	if b.N == 0 || from < b.First {
		b.First = from
	}
	if b.N == 0 || to > b.Last {
		b.Last = to
	}
	b.N++
}

// Merge adds the bounds of other events.
func (b *Bounds) Merge(o Bounds) {
	if o.N == 0 {
		return
	}
	n := b.N + o.N
	b.Add(o.First, o.Last)
	b.N = n
}

// take returns the batch, in slices of the right size, and empties p's batch for the next piece.
func (b *Batch) take() *Batch {
	out := *b
	out.Events = slices.Clone(b.Events)
	out.Instants = slices.Clone(b.Instants)
	out.Samples = slices.Clone(b.Samples)
	out.Arrows = slices.Clone(b.Arrows)
	out.Redundant = slices.Clone(b.Redundant)
	out.Launches = slices.Clone(b.Launches)
	out.Grids = slices.Clone(b.Grids)
	out.Collectives = slices.Clone(b.Collectives)
	out.Peers = slices.Clone(b.Peers)
	out.Steps = slices.Clone(b.Steps)
	out.Prints = slices.Clone(b.Prints)
	out.Asked = slices.Clone(b.Asked)
	out.Callers = slices.Clone(b.Callers)
	out.Syncs = slices.Clone(b.Syncs)
	out.Rows = slices.Clone(b.Rows)
	out.Open = slices.Clone(b.Open)
	*b = Batch{
		Rows: b.Rows[:0], Open: b.Open[:0],
		Tables: Tables{
			Events: b.Events[:0], Instants: b.Instants[:0], Samples: b.Samples[:0], Arrows: b.Arrows[:0],
			Redundant: b.Redundant[:0], Launches: b.Launches[:0], Grids: b.Grids[:0],
			Collectives: b.Collectives[:0], Peers: b.Peers[:0], Steps: b.Steps[:0], Prints: b.Prints[:0],
			Asked: b.Asked[:0], Callers: b.Callers[:0], Syncs: b.Syncs[:0],
		},
	}
	return &out
}

// A Diag is a diagnostic on the file.
type Diag struct {
	Message *trace.Message
	Offset  int64
	Msg     string // the message with its values
	Count   int
}

// Diags are diagnostics, one per code.
type Diags []Diag

// Report counts a message.
func (d *Diags) Report(m *trace.Message, offset int64, count int, values ...any) {
	d.Add(Diag{m, offset, m.Says(values...), count})
}

// Add counts a diagnostic. For each message it keeps the one that comes first in the file.
func (d *Diags) Add(x Diag) {
	for i := range *d {
		have := &(*d)[i]
		if have.Message != x.Message {
			continue
		}
		have.Count += x.Count
		if x.Offset < have.Offset {
			have.Offset, have.Msg = x.Offset, x.Msg
		}
		return
	}
	*d = append(*d, x)
}
