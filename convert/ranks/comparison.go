package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// moments are events as columns, sorted by Start.
type moments struct {
	Start []trace.Time
	Dur   []int64
	Name  []trace.Sym // bare names, see [profile.BareNames]
}

// len returns the number of events.
func (m *moments) len() int { return len(m.Start) }

// A comparison finds the events of one process that two profilers both recorded, even if nothing is known
// about how their clocks relate: events with equal names and durations, in the same order. The events of
// one side are held in memory; those of the other may be streamed, twice:
//
//	c := newComparison(held, 0)
//	for each event { c.observe(name, start, dur) }
//	if shift, ok := c.settle(); ok {
//		search := c.begin()
//		for each event { if search.has(name, start, dur) { it is there twice } }
//	}
//
// Kernels run in steps that repeat, and so do their names. Durations, which are in nanoseconds, tell the
// steps apart. Anchors, which are events with the rarest durations, are taken from short pieces of the
// recording, within which the clocks cannot drift apart. Each piece collects the time differences between
// its anchors and all events they may be; an offset on which many anchors agree is a candidate. The
// candidates of pieces that agree with each other give the shift and its drift.
type comparison struct {
	held    moments
	near    int64
	grain   int64 // resolution of the held events' times; see grainOf
	coarse  bool  // whether an observed event had times in microseconds
	pieces  []piece
	anchors []anchor
	byKey   map[anchorKey][]int32 // anchors by name and duration
	knots   []knot                // the result of settle, by time
	drift   float64               // applies beyond the knots
	by      int64                 // how far, in ns, starts may be from where they are expected
}

// A Shift relates the clock of streamed events to that of the held ones:
//
//	streamed = held + Offset + DriftPPB/1e9 * (held - At)
type Shift struct {
	At       trace.Time // on the held events' clock
	Offset   int64
	DriftPPB int64
	Bound    int64 // largest difference between the two profilers' times after the shift, ns
	Matches  int   // number of anchors that it is based on
}

const (
	// At most maxPieces pieces, of maxAnchors anchors each, are examined, spread over the held events.
	maxPieces  = 64
	maxAnchors = 48
	// The maximum length of a piece, in events and in ns.
	pieceEvents = 2000
	pieceSpan   = 100_000_000
	// maxPairs is the maximum number of candidates of an anchor; with more, it is useless.
	maxPairs = 2048
	// maxDrift is the largest relative drift between clocks: crystals are accurate to 50 ppm, and NTP may
	// slew by 500 ppm, but only for seconds.
	maxDrift = 2e-4
	// minAnchors is how many anchors must agree.
	minAnchors = 8
	// rivalry is by what factor a shift must beat the next best one.
	rivalry = 1.5
)

// A piece is a short part of the held events.
type piece struct {
	middle trace.Time
	span   int64
	first  int // index of its first anchor
	last   int // index after its last anchor
}

// An anchor is a held event that is looked for.
type anchor struct {
	start trace.Time
	dur   int64
	diffs []int64 // streamed minus held start, of all candidates
	lost  bool    // it had too many candidates
}

// anchorKey looks up anchors by name and approximate duration.
type anchorKey struct {
	name trace.Sym
	dur  int64 // in units of 1 << bucketBits ns
}

// bucketBits makes buckets wider than the tolerance for times in microseconds.
const bucketBits = 11

// newComparison holds events. near is how far apart the starts of equal events may be on the two clocks, in
// ns; 0 is any distance. It narrows the search if both clocks claim to show Unix time.
func newComparison(held moments, near int64) *comparison {
	t := &comparison{held: held, near: near, grain: grainOf(held), byKey: map[anchorKey][]int32{}}
	if near == 0 {
		t.near = math.MaxInt64
	}
	t.choose()
	return t
}

// grainOf returns the resolution of times in ns: PyTorch before 2.4 writes whole microseconds.
func grainOf(m moments) int64 {
	for i := range m.Start {
		if m.Start[i]%1000 != 0 || m.Dur[i]%1000 != 0 {
			return 1
		}
	}
	return 1000
}

// tolerance returns how far equal durations, or equal starts, may differ by rounding.
func tolerance(a, b int64) int64 { return max(a, b, 2) }

// choose chooses pieces and anchors.
func (t *comparison) choose() {
	n := t.held.len()
	counts := map[anchorKey]int32{}
	exact := func(i int) anchorKey { return anchorKey{t.held.Name[i], t.held.Dur[i]} }
	for i := range n {
		counts[exact(i)]++
	}
	if n == 0 {
		return
	}
	span := t.held.Start[n-1] - t.held.Start[0]
	pieces := int(max(1, min(maxPieces, max(int64(n/pieceEvents), int64(span/pieceSpan)))))
	var places []int
	end := 0 // end of the previous piece
	for p := range pieces {
		from := max(end, p*n/pieces)
		end = from
		for end < n && end-from < pieceEvents && t.held.Start[end]-t.held.Start[from] < pieceSpan {
			end++
		}
		if end == from {
			continue
		}
		places = places[:0]
		for i := from; i < end; i++ {
			places = append(places, i)
		}
		slices.SortStableFunc(places, func(a, b int) int {
			return cmp.Or(cmp.Compare(counts[exact(a)], counts[exact(b)]), cmp.Compare(t.held.Dur[b], t.held.Dur[a]))
		})
		span := t.held.Start[end-1] - t.held.Start[from]
		pc := piece{middle: t.held.Start[from] + span/2, span: int64(span), first: len(t.anchors)}
		for _, i := range places[:min(len(places), maxAnchors)] {
			t.addAnchor(i)
		}
		pc.last = len(t.anchors)
		t.pieces = append(t.pieces, pc)
	}
}

func (t *comparison) addAnchor(i int) {
	a := anchor{start: t.held.Start[i], dur: t.held.Dur[i]}
	key := anchorKey{t.held.Name[i], a.dur >> bucketBits}
	t.byKey[key] = append(t.byKey[key], int32(len(t.anchors)))
	t.anchors = append(t.anchors, a)
}

// observe records an event of the other side; there may be any number, in any order.
func (t *comparison) observe(name trace.Sym, start trace.Time, dur int64) {
	other := int64(1)
	if start%1000 == 0 && dur%1000 == 0 {
		other, t.coarse = 1000, true
	}
	by := tolerance(t.grain, other)
	for bucket := (dur - by) >> bucketBits; bucket <= (dur+by)>>bucketBits; bucket++ {
		for _, i := range t.byKey[anchorKey{name, bucket}] {
			a := &t.anchors[i]
			diff := int64(start - a.start)
			if a.lost || a.dur < dur-by || a.dur > dur+by || diff > t.near || diff < -t.near {
				continue
			}
			if len(a.diffs) == maxPairs {
				a.lost, a.diffs = true, nil
				continue
			}
			a.diffs = append(a.diffs, diff)
		}
	}
}

// workOf returns the device work in one part of a profile: from its fingerprint, or from its events if it
// has none.
func workOf(p *profile.Profile, part string, names *trace.PerName[trace.Sym]) moments {
	if p.Fingerprint == nil {
		m, _ := momentsOf(p, part, profile.KernelSlice, profile.CopySlice, names)
		return m
	}
	prints := order.Only(p.Fingerprint, func(x profile.Fingerprint) bool { return p.Rows[x.Row].Part == part })
	slices.SortStableFunc(prints, func(a, b profile.Fingerprint) int { return cmp.Compare(a.Time, b.Time) })
	var m moments
	for _, x := range prints {
		m.Start, m.Dur, m.Name = append(m.Start, x.Time), append(m.Dur, x.Dur), append(m.Name, names.Of(x.Name))
	}
	return m
}

// momentsOf returns the events of one part of a profile whose kinds are between first and last, as moments,
// and the index of each event.
func momentsOf(p *profile.Profile, part string, first, last profile.SliceKind, names *trace.PerName[trace.Sym]) (moments, []int32) {
	var events []int32
	for i := range p.Events {
		at := p.Events[i].Place
		if kind := at.Kind(); kind >= first && kind <= last && p.Rows[at.Row()].Part == part {
			events = append(events, int32(i))
		}
	}
	slices.SortStableFunc(events, func(a, b int32) int { return cmp.Compare(p.Events[a].Time, p.Events[b].Time) })
	m := moments{make([]trace.Time, len(events)), make([]int64, len(events)), make([]trace.Sym, len(events))}
	for k, i := range events {
		e := &p.Events[i]
		m.Start[k], m.Dur[k], m.Name[k] = e.Time, e.Dur, names.Of(e.Name)
	}
	return m, events
}
