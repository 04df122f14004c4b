package trace

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// Indexes into the tables of a [Trace]; 0 is none.
type (
	TrackID   uint32
	SliceID   uint32
	SubjectID uint32
)

// A Slice is an interval on a track.
type Slice struct {
	Time  Time
	Dur   int64 // ns, >= 0
	Track TrackID
	Name  Sym
	Cat   Sym
	Args  ArgsID
}

// End returns the instant at which s ends.
func (s Slice) End() Time { return s.Time + Time(s.Dur) }

// An Instant is a point event on a track.
type Instant struct {
	Time  Time
	Track TrackID
	Name  Sym
	Args  ArgsID
}

// A Sample is the value of a counter track from Time on.
type Sample struct {
	Time  Time
	Value float64
	Track TrackID
}

// LiesApart implements [memory.Apart]: the rows of each track are in a different place of the table, and
// writing a timeline visits all tracks at once.
func (Slice) LiesApart() {}

// LiesApart is like that of the slice that has the subject.
func (SubjectID) LiesApart() {}

// LiesApart is like that of slices.
func (Instant) LiesApart() {}

// LiesApart is like that of slices.
func (Sample) LiesApart() {}

// A Flow is an arrow from one slice to another. Every edge is its own flow; the IDs in inputs are dropped,
// so that inputs cannot be cross-linked.
type Flow struct {
	From, To SliceID
	Name     Sym
}

// TrackKind says what a track represents.
type TrackKind uint8

const (
	KindGroup   TrackKind = iota // a heading, with at most a few events of its own
	KindHost                     // a machine
	KindProcess                  // a process, with its rank if known
	KindThread                   // a thread or one of its lanes
	KindStream                   // a GPU stream
	KindRequest                  // one request
	KindCounter                  // a counter, which has only samples
)

// A Track is a row, or a group of rows, of the timeline.
type Track struct {
	Parent   TrackID
	Kind     TrackKind
	Name     Sym
	Host     Sym
	PID, TID int64 // as reported by the producer; 0 is unknown
	Rank     Rank
	Order    int32 // among the children of Parent, ascending
	Desc     Sym   // where the track comes from, for the viewer's help popup
	Unit     Sym   // of a counter
}

// A Rank is the position of a process in its parallel groups. -1 is unknown: a missing rank is not rank 0.
type Rank struct {
	TP, PP, DP, EP int16
	Global         int32
}

// NoRank is a completely unknown Rank.
var NoRank = Rank{-1, -1, -1, -1, -1}

// String formats the known parts as "DP2 PP1 TP0 EP3", or else "rank N", or else "".
func (r Rank) String() string {
	var b []byte
	for _, p := range [...]struct {
		name string
		n    int16
	}{{"DP", r.DP}, {"PP", r.PP}, {"TP", r.TP}, {"EP", r.EP}} {
		if p.n < 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(append(b, p.name...), int64(p.n), 10)
	}
	if len(b) == 0 && r.Global >= 0 {
		b = strconv.AppendInt(append(b, "rank "...), int64(r.Global), 10)
	}
	return string(b)
}

// ParseRank parses the output of String, with parts in any order and case, and optionally joined by
// hyphens: "DP1 TP0", "TP0-PP0-DP1", "rank 7". The word may be omitted: "7".
func ParseRank(text string) (Rank, error) {
	r := NoRank
	parts := map[string]*int16{"TP": &r.TP, "PP": &r.PP, "DP": &r.DP, "EP": &r.EP}
	for part := range strings.SplitSeq(strings.ReplaceAll(strings.TrimPrefix(strings.ToUpper(text), "RANK "), " ", "-"), "-") {
		digits := strings.TrimLeft(part, "TPDE")
		n, err := strconv.ParseUint(digits, 10, 31)
		to := parts[part[:len(part)-len(digits)]]
		switch {
		case err == nil && to != nil && *to < 0 && n <= math.MaxInt16:
			*to = int16(n)
		case err == nil && part == digits && r.Global < 0:
			r.Global = int32(n)
		default:
			return NoRank, fmt.Errorf("rank %q: want parts like DP2, PP1, TP0, EP3, joined by spaces or hyphens, or a number", text)
		}
	}
	return r, nil
}

// Matches reports whether every known part of want is equal in r.
func (want Rank) Matches(r Rank) bool {
	eq := func(w, have int32) bool { return w < 0 || w == have }
	return eq(int32(want.TP), int32(r.TP)) && eq(int32(want.PP), int32(r.PP)) && eq(int32(want.DP), int32(r.DP)) &&
		eq(int32(want.EP), int32(r.EP)) && eq(want.Global, r.Global)
}

// Contradicts reports whether a part that is known in both differs.
func (r Rank) Contradicts(o Rank) bool {
	differ := func(a, b int32) bool { return a >= 0 && b >= 0 && a != b }
	return differ(int32(r.TP), int32(o.TP)) || differ(int32(r.PP), int32(o.PP)) || differ(int32(r.DP), int32(o.DP)) ||
		differ(int32(r.EP), int32(o.EP)) || differ(r.Global, o.Global)
}

// Known returns the number of known parts.
func (r Rank) Known() (n int) {
	for _, part := range [...]int32{int32(r.TP), int32(r.PP), int32(r.DP), int32(r.EP), r.Global} {
		if part >= 0 {
			n++
		}
	}
	return n
}

// Fill returns r with its unknown parts taken from o.
func (r Rank) Fill(o Rank) Rank {
	fill := func(to *int16, from int16) {
		if *to < 0 {
			*to = from
		}
	}
	fill(&r.TP, o.TP)
	fill(&r.PP, o.PP)
	fill(&r.DP, o.DP)
	fill(&r.EP, o.EP)
	if r.Global < 0 {
		r.Global = o.Global
	}
	return r
}

// Compare orders ranks by DP, PP, TP, EP, and Global, the order in which people lay out a deployment.
func (r Rank) Compare(o Rank) int {
	for _, d := range [...]int32{
		int32(r.DP) - int32(o.DP), int32(r.PP) - int32(o.PP),
		int32(r.TP) - int32(o.TP), int32(r.EP) - int32(o.EP), r.Global - o.Global,
	} {
		if d != 0 {
			return int(d)
		}
	}
	return 0
}

// SyncBasis says how the relation of two clocks is known, best first.
type SyncBasis uint8

const (
	SyncGiven    SyncBasis = iota // by the user
	SyncRecorded                  // by the producer
	SyncMatched                   // from events seen on both clocks
	SyncAssumed                   // no evidence: assumed to be equal
)

// String returns the word used in reports.
func (w SyncBasis) String() string {
	return [...]string{"given", "recorded", "matched", "assumed"}[w]
}

// A Subject is what events on several tracks are about, usually a request: viewers give all of its events
// one color, and show its Args with each.
type Subject struct {
	ID   Sym
	Args ArgsID
}

// A Trace is a finished timeline. Slices are sorted by track, then time, then longest first, and nest;
// instants and samples are sorted by track, then time. Index 0 of Tracks, Slices, and Subjects is reserved.
type Trace struct {
	Syms     *Symbols
	Args     *Args
	Tracks   []Track
	Slices   []Slice
	About    []SubjectID // of each slice; parallel to Slices
	Subjects []Subject
	Instants []Instant
	Samples  []Sample
	Flows    []Flow
	// Attributes describe the trace as a whole (tool version, inputs).
	Attributes []Attribute
}

// An Attribute is a key and value that describe a trace.
type Attribute struct{ Key, Value string }

// AllSlices yields the IDs of all slices, in order. Use it to walk over large tables: see [memory.Each].
func (t *Trace) AllSlices() iter.Seq[SliceID] {
	return func(yield func(SliceID) bool) {
		for i := range memory.Each(len(t.Slices)-1, int(unsafe.Sizeof(Slice{}))) {
			if !yield(SliceID(i + 1)) {
				return
			}
		}
	}
}

// AllInstants is AllSlices for instants, whose indexes begin with 0.
func (t *Trace) AllInstants() iter.Seq[int] {
	return memory.Each(len(t.Instants), int(unsafe.Sizeof(Instant{})))
}

// Bounds returns the first and the last instant of the trace; ok is false if it has no events.
func (t *Trace) Bounds() (from, to Time, ok bool) {
	b := noBounds
	extend(&b, t.Slices[1:], func(s *Slice) bounds { return bounds{s.Time, s.End()} })
	extend(&b, t.Instants, func(i *Instant) bounds { return bounds{i.Time, i.Time} })
	extend(&b, t.Samples, func(s *Sample) bounds { return bounds{s.Time, s.Time} })
	if b.from > b.to {
		return 0, 0, false
	}
	return b.from, b.to, true
}

// bounds are the first and last instant of some rows.
type bounds struct{ from, to Time }

var noBounds = bounds{math.MaxInt64, math.MinInt64}

func (b *bounds) add(o bounds) { b.from, b.to = min(b.from, o.from), max(b.to, o.to) }

// extend adds the rows of a table to b.
func extend[T any](b *bounds, table []T, of func(*T) bounds) {
	var row T
	parallel.Fold(len(table), int(unsafe.Sizeof(row)), func() *bounds { return &bounds{noBounds.from, noBounds.to} },
		func(part *bounds, from, to int) {
			for i := from; i < to; i++ {
				part.add(of(&table[i]))
			}
		}, func(part *bounds) { b.add(*part) })
}

// An Opening says what a viewer should show first. It is stored in the attributes of the trace itself.
type Opening struct {
	// Pin has the rows to keep in sight, by path: the names of their ancestors and their own, joined by
	// PathSeparator. A path has no line break.
	Pin []string
	// From and To are the time to show; 0 is all of it.
	From, To Time
}

// PathSeparator separates the names in a path of tracks.
const PathSeparator = " > "

// Keys of the attributes of an opening.
const (
	openingPin  = "sgtrace.open.pin"
	openingFrom = "sgtrace.open.from"
	openingTo   = "sgtrace.open.to"
)

// Attributes returns an opening as attributes; none if it is empty.
func (o *Opening) Attributes() (list []Attribute) {
	if len(o.Pin) > 0 {
		list = append(list, Attribute{openingPin, strings.Join(o.Pin, "\n")})
	}
	if o.From < o.To {
		list = append(list, Attribute{openingFrom, strconv.FormatInt(int64(o.From), 10)}, Attribute{openingTo, strconv.FormatInt(int64(o.To), 10)})
	}
	return list
}

// OpeningOf reads an opening from attributes. Invalid values are ignored.
func OpeningOf(attributes map[string]string) (o Opening) {
	if pin := attributes[openingPin]; pin != "" {
		o.Pin = strings.Split(pin, "\n")
	}
	from, errFrom := strconv.ParseInt(attributes[openingFrom], 10, 64)
	to, errTo := strconv.ParseInt(attributes[openingTo], 10, 64)
	if errFrom == nil && errTo == nil && from < to {
		o.From, o.To = Time(from), Time(to)
	}
	return o
}
