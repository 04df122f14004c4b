package chrometrace

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A batch is what a parser made of a piece of input, of one document at most.
// Its records refer to events and rows of the batch; the collector moves them.
type batch struct {
	newDoc bool // a document begins with this batch
	object bool // it is an object, whose end is known
	// chrome tells that the batch is surely of a Chrome trace: it has a list of
	// events, or an event.
	chrome bool
	header []member
	rows   []*rowID
	names  []rowName
	tables
	open []span // begin and end events, in order
	diags
	total int
	drawn bool // there are arrows from launches, if our writer wrote the document
	// Bounds of events whose time is absolute, relative, and exactly 0, which in
	// a file of Kineto is no time.
	absolute, relative, zero bounds
	zeroAt                   int64 // where the first event at time 0 is
}

// tables are lists of a [profile.Profile].
type tables struct {
	events      []trace.Slice
	instants    []trace.Instant
	samples     []trace.Sample
	arrows      []profile.Arrow
	redundant   []profile.Arrow // of no use if any event has a correlation
	launches    []profile.Link
	work        []profile.Link
	collectives []profile.Collective
	steps       []profile.Step
	prints      []trace.Slice // of the fingerprint
}

// A member is a key of a document with its value, as text.
type member struct {
	key    string
	value  []byte
	offset int64
}

// bounds are the first and the last instant of n events.
type bounds struct {
	first, last trace.Time
	n           int
}

func (b *bounds) add(from, to trace.Time) {
	if b.n == 0 || from < b.first {
		b.first = from
	}
	if b.n == 0 || to > b.last {
		b.last = to
	}
	b.n++
}

func (b *bounds) merge(o bounds) {
	if o.n == 0 {
		return
	}
	n := b.n + o.n
	b.add(o.first, o.last)
	b.n = n
}

// take returns what was gathered, in slices of the right size, and empties the
// batch for the next piece.
func (b *batch) take() *batch {
	out := *b
	out.events = slices.Clone(b.events)
	out.instants = slices.Clone(b.instants)
	out.samples = slices.Clone(b.samples)
	out.arrows = slices.Clone(b.arrows)
	out.redundant = slices.Clone(b.redundant)
	out.launches = slices.Clone(b.launches)
	out.work = slices.Clone(b.work)
	out.collectives = slices.Clone(b.collectives)
	out.steps = slices.Clone(b.steps)
	out.prints = slices.Clone(b.prints)
	out.rows = slices.Clone(b.rows)
	out.open = slices.Clone(b.open)
	*b = batch{
		rows: b.rows[:0], open: b.open[:0],
		tables: tables{
			events: b.events[:0], instants: b.instants[:0], samples: b.samples[:0], arrows: b.arrows[:0],
			redundant: b.redundant[:0], launches: b.launches[:0], work: b.work[:0],
			collectives: b.collectives[:0], steps: b.steps[:0], prints: b.prints[:0],
		},
	}
	return &out
}

// A diag is a diagnostic on the file.
type diag struct {
	severity trace.Severity
	code     string
	offset   int64
	msg      string
	count    int
}

// diags are diagnostics, one for each code.
type diags []diag

// report counts a diagnostic. Of those with one code the first in the file is
// kept.
func (d *diags) report(s trace.Severity, code string, offset int64, count int, msg string) {
	for i := range *d {
		have := &(*d)[i]
		if have.code != code {
			continue
		}
		have.count += count
		if offset < have.offset {
			have.offset, have.msg = offset, msg
		}
		return
	}
	*d = append(*d, diag{s, code, offset, msg, count})
}
