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

// rankCalls are the collectives of a rank that are of certain kinds, by start. They stay in the tables of
// its captures.
type rankCalls struct {
	tables []captureCalls
	places []callPlace // nil: the rows of the only table, in their order
}

// captureCalls are the collectives of a capture.
type captureCalls struct {
	Capture     *ranks.Capture
	Collectives profile.Collectives
	names       []callName // by kind
	are         []bool     // by kind: it is wanted
}

// A callPlace is a row of a table.
type callPlace struct{ table, row int32 }

// A callName is what a kind of collectives is called where collectives are compared.
type callName struct {
	comm matching.CommID
	call matching.CallID
	what int32 // in namer.whats
	// counted tells that we counted Seq. Where one range was lost, all numbers behind it are
	// wrong, but not the order.
	counted bool
}

// newRankCalls returns the collectives of a rank that are of the wanted kinds.
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

// has reports whether a row is wanted, and of the part that the capture is of.
func (t *captureCalls) has(row int) bool {
	kind := t.Collectives.KindOf(row)
	k := &t.Collectives.Kinds()[kind]
	return t.are[kind] && t.Capture.File.Rows[k.Row].Part == t.Capture.Part
}

// sort finds the places of the n calls, by start.
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

// Len returns how many calls there are.
func (r *rankCalls) Len() int {
	if r.places == nil && len(r.tables) > 0 {
		return r.tables[0].Collectives.Len()
	}
	return len(r.places)
}

// of returns the table of a call, and its row there.
func (r *rankCalls) of(i int32) (*captureCalls, int) {
	if r.places == nil {
		return &r.tables[0], int(i)
	}
	p := r.places[i]
	return &r.tables[p.table], int(p.row)
}

// Of returns a call as its file has it now, which may have been read again, and the capture
// that has it.
func (r *rankCalls) Of(i int32) (*ranks.Capture, profile.Collective) {
	t, row := r.of(i)
	return t.Capture, t.Capture.File.Collectives.At(row)
}

// HasCommsIDs reports whether some calls have a Comms Id.
func (r *rankCalls) HasCommsIDs() bool {
	return slices.ContainsFunc(r.tables, func(t captureCalls) bool { return t.Collectives.HasCommsIDs() })
}

// At returns a call in the form in which collectives are compared.
func (r *rankCalls) At(i int) matching.Collective {
	t, row := r.of(int32(i))
	n := &t.names[t.Collectives.KindOf(row)]
	c := matching.Collective{Start: int64(t.Collectives.Start(row)), End: int64(t.Collectives.End(row)), CommsID: t.Collectives.CommsID(row), Seq: -1, Comm: n.comm, Call: n.call, Step: -1}
	if !n.counted {
		c.Seq = t.Collectives.Seq(row)
	}
	if t.Capture.File.Meta.Blur != 0 {
		c.Start, c.End = math.MaxInt64, math.MinInt64 // not sound
	}
	return c
}
