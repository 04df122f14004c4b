package clocks

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// rankCalls are the collectives of a rank that are of certain kinds, by start time. The rows stay in the
// tables of the rank's captures.
type rankCalls struct {
	tables []captureCalls
	places []callPlace // nil: the rows of the only table, in table order
}

// captureCalls are the collectives of one capture.
type captureCalls struct {
	Capture     *ranks.Capture
	Collectives profile.Collectives
	names       []callName // by kind
	are         []bool     // by kind: whether it is wanted
}

// A callPlace is a row of a table.
type callPlace struct{ table, row int32 }

// A callName identifies a kind of collectives when collectives are compared.
type callName struct {
	comm matching.CommID
	call matching.CallID
	what int32 // index into namer.whats
	// counted says that this program counted Seq itself. If one range was lost, all later numbers are
	// wrong, but their order still holds.
	counted bool
}

// newRankCalls returns the collectives of a rank whose kinds are wanted. are selects kinds, name names them.
func newRankCalls(r *ranks.Track, are func(*profile.Collective) bool, name func(*profile.Collective) callName) *rankCalls {
	calls := &rankCalls{}
	total, whole := 0, len(r.Captures) == 1
	for _, c := range r.Captures {
		t := captureCalls{Capture: c, Collectives: c.File.Collectives}
		for k := range t.Collectives.Kinds() {
			kind := &t.Collectives.Kinds()[k]
			t.names, t.are = append(t.names, name(kind)), append(t.are, are(kind))
		}
		if !slices.Contains(t.are, true) {
			continue
		}
		n := 0
		for i := range t.Collectives.Len() {
			if t.has(i) {
				n++
			}
			whole = whole && (i == 0 || t.Collectives.Start(i-1) <= t.Collectives.Start(i))
		}
		total, whole = total+n, whole && n == t.Collectives.Len()
		calls.tables = append(calls.tables, t)
	}
	if !whole {
		calls.sort(total)
	}
	return calls
}

// has reports whether a row is of a wanted kind, and from the part of the file that the capture is.
func (t *captureCalls) has(row int) bool {
	kind := t.Collectives.KindOf(row)
	k := &t.Collectives.Kinds()[kind]
	return t.are[kind] && t.Capture.File.Rows[k.Row].Part == t.Capture.Part
}

// sort fills places with the n wanted calls, by start time.
func (r *rankCalls) sort(n int) {
	r.places = memory.Make[callPlace](n)[:0]
	for k := range r.tables {
		t := &r.tables[k]
		for i := range t.Collectives.Len() {
			if t.has(i) {
				r.places = append(r.places, callPlace{int32(k), int32(i)})
			}
		}
	}
	start := func(p callPlace) trace.Time { return r.tables[p.table].Collectives.Start(int(p.row)) }
	slices.SortStableFunc(r.places, func(a, b callPlace) int { return cmp.Compare(start(a), start(b)) })
}

// Len returns the number of calls.
func (r *rankCalls) Len() int {
	if r.places == nil && len(r.tables) > 0 {
		return r.tables[0].Collectives.Len()
	}
	return len(r.places)
}

// of returns the table of call i, and its row there.
func (r *rankCalls) of(i int32) (*captureCalls, int) {
	if r.places == nil {
		return &r.tables[0], int(i)
	}
	p := r.places[i]
	return &r.tables[p.table], int(p.row)
}

// Of returns call i as its file has it now (the file may have been read again since), and its capture.
func (r *rankCalls) Of(i int32) (*ranks.Capture, profile.Collective) {
	t, row := r.of(i)
	return t.Capture, t.Capture.File.Collectives.At(row)
}

// HasCommsIDs reports whether any call has a Comms Id.
func (r *rankCalls) HasCommsIDs() bool {
	return slices.ContainsFunc(r.tables, func(t captureCalls) bool { return t.Collectives.HasCommsIDs() })
}

// At returns call i in the form in which collectives are compared.
func (r *rankCalls) At(i int) matching.Collective {
	t, row := r.of(int32(i))
	n := &t.names[t.Collectives.KindOf(row)]
	c := matching.Collective{Start: int64(t.Collectives.Start(row)), End: int64(t.Collectives.End(row)), CommsID: t.Collectives.CommsID(row), Seq: -1, Comm: n.comm, Call: n.call, Step: -1}
	if !n.counted {
		c.Seq = t.Collectives.Seq(row)
	}
	if t.Capture.File.Meta.Blur != 0 {
		c.Start, c.End = math.MaxInt64, math.MinInt64 // unusable times: see Timed
	}
	return c
}
