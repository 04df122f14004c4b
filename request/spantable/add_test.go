package spantable

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Blocks that are filled concurrently give the same table as adding spans one after another.
func TestBlocksAreFilledSideBySide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	want, got := New(&trace.Diags{}), New(&trace.Diags{})
	var fills sync.WaitGroup
	for block := range 40 {
		want.Frame(int64(block))
		got.Frame(int64(block))
		type row struct {
			span   Span
			events []Event
			links  []Link
			trace  uint32
			linked []uint32
		}
		rows := make([]row, rng.IntN(1000))
		events, links := 0, 0
		for i := range rows {
			r := &rows[i]
			r.span = Span{TraceLo: rng.Uint64N(300), ID: rng.Uint64(), Start: trace.Time(rng.Int64()), Line: uint32(rng.IntN(2)), Status: StatusError}
			r.trace = got.Number(TraceID{0, r.span.TraceLo})
			for range rng.IntN(4) {
				r.events = append(r.events, Event{Time: trace.Time(rng.Int64())})
				l := Link{TraceLo: rng.Uint64N(300), ID: rng.Uint64()}
				r.links, r.linked = append(r.links, l), append(r.linked, got.Number(TraceID{0, l.TraceLo}))
			}
			events, links = events+len(r.events), links+len(r.links)
			want.Add(&r.span, r.events, r.links)
		}
		if block%5 == 4 { // mixes both ways
			for i := range rows {
				got.Add(&rows[i].span, rows[i].events, rows[i].links)
			}
			continue
		}
		b := got.Reserve(len(rows), events, links)
		fills.Go(func() {
			for i := range rows {
				r := &rows[i]
				b.Add(&r.span, r.trace, r.events, r.links, r.linked)
			}
		})
	}
	fills.Wait()
	if !reflect.DeepEqual(got, want) {
		t.Error("the tables differ")
	}
}
