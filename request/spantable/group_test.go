package spantable

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A Tree renumbers the spans, including those added since the previous Tree. Each keeps its
// contents, events, links, and place; spans of a trace become adjacent, in reading order.
func TestTreeKeepsSpans(t *testing.T) {
	type content struct {
		span   Span
		events []Event
		links  []Link
		pos    trace.Pos
	}
	for _, n := range []int{0, 1, 2, 40, 3 * 4096} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		d := New(&trace.Diags{})
		d.Files = []File{{Name: "f"}}
		was := map[uint64]content{} // by ID
		for i := range n {
			id := uint64(i + 1)
			c := content{span: Span{TraceLo: uint64(i/50 + rng.IntN(100)), ID: id, Start: trace.Time(i), End: trace.Time(2 * i), Line: uint32(id), Kind: 1}}
			if i%3 == 0 {
				c.span.Line = 0
				d.Frame(int64(10 * i))
			}
			for range rng.IntN(3) {
				c.events = append(c.events, Event{Time: trace.Time(rng.Int64())})
				c.links = append(c.links, Link{TraceLo: rng.Uint64N(400), ID: rng.Uint64()})
			}
			d.Add(&c.span, c.events, c.links)
			c.pos = d.Pos(d.Len() - 1)
			was[id] = c
			if i == n/2 || i == n/3 { // later spans may follow, as in a growing dump
				NewTree(d)
			}
		}
		NewTree(d)
		if d.Len() != n {
			t.Fatalf("%d spans of %d", d.Len(), n)
		}
		ended := map[uint64]bool{} // completed traces
		for i := range n {
			s := d.Span(i)
			c := was[s.ID]
			var links []Link
			for l := range d.Links(i) {
				links = append(links, l)
			}
			var events []Event
			for e := range d.Events(i) {
				events = append(events, *e)
			}
			if s != c.span || !slices.Equal(events, c.events) || !slices.Equal(links, c.links) || d.Pos(i) != c.pos {
				t.Fatalf("span %d of %d is %+v %v %v at %v, was %+v", i, n, s, events, links, d.Pos(i), c)
			}
			if i == 0 {
				continue
			}
			switch last := d.Span(i - 1); {
			case last.TraceLo != s.TraceLo:
				ended[last.TraceLo] = true
			case last.ID > s.ID:
				t.Errorf("of trace %d, span %d comes before %d", s.TraceLo, last.ID, s.ID)
			}
			if ended[s.TraceLo] {
				t.Errorf("span %d of trace %d is apart from the others", s.ID, s.TraceLo)
			}
		}
	}
}
