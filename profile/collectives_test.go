package profile

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/sgtrace/sgtrace/trace"
)

// A table returns the collectives that were added, with any numbers and any number of kinds.
func TestCollectives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		all := []int64{0, -1, 1, math.MaxUint32 - 1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64 - 1, math.MinInt64, r.Int64N(1 << 20)}
		return all[r.IntN(len(all))]
	}
	kinds := 1
	random := func() Collective {
		return Collective{Event: int32(r.IntN(3)) - 1, Row: int32(r.IntN(kinds)), Time: trace.Time(number()), Dur: number(), Name: trace.Sym(r.IntN(kinds)), OnGPU: r.IntN(kinds) == 0,
			CommsID: uint64(number()), Seq: number(), Op: trace.Sym(r.IntN(kinds)), In: int64(r.IntN(kinds)), Out: -1, GroupSize: int32(r.IntN(kinds)), Splits: trace.Sym(r.IntN(kinds)),
			Correlation: number(), Step: StepKind(r.IntN(3))}
	}
	for ; kinds < 200; kinds += 13 {
		var table Collectives
		var list []Collective
		for range r.IntN(2000) {
			x := random()
			table.Add(&x)
			list = append(list, x)
			i := r.IntN(len(list))
			if x := random(); r.IntN(3) == 0 {
				table.Set(i, &x)
				list[i] = x
			}
			list = append(list, addRun(&table, random(), number, r.IntN(3))...)
		}
		if table.Len() != len(list) {
			t.Fatalf("%d of %d", table.Len(), len(list))
		}
		for i, x := range list {
			if got := table.At(i); got != x {
				t.Fatalf("%+v, want %+v", got, x)
			}
			if kind := table.Kinds()[table.KindOf(i)]; table.Start(i) != x.Time || table.End(i) != x.Time+trace.Time(x.Dur) || table.Seq(i) != x.Seq || table.CommsID(i) != x.CommsID || kind.Name != x.Name {
				t.Fatalf("%+v of %+v", kind, x)
			}
		}
	}
}

// addRun adds n collectives of a kind at once, some without all numbers, and returns them.
func addRun(table *Collectives, x Collective, number func() int64, n int) (list []Collective) {
	x.Event, x.Correlation = NoEvent, 0
	var start, dur, seq, comms []int64
	for i := range n {
		start, dur, seq = append(start, number()), append(dur, number()), append(seq, number())
		x.Time, x.Dur, x.Seq, x.CommsID = trace.Time(start[i]), dur[i], seq[i], 0
		if i == 0 {
			comms = append(comms, number())
			x.CommsID = uint64(comms[0])
		}
		list = append(list, x)
	}
	table.AddRun(table.Kind(&x), start, dur, seq, comms)
	return list
}

// Collectives of a few kinds take 20 bytes each, and unknown numbers take none.
func TestCollectivesAreSmall(t *testing.T) {
	const n = 100_000
	var table Collectives
	for i := range n {
		table.Add(&Collective{Event: NoEvent, Time: trace.Time(1<<60 + i), Dur: 1 << 30, Name: trace.Sym(i % 7), In: int64(i % 5), Seq: int64(i)})
	}
	bytes := int(unsafe.Sizeof(collectiveRow{}))*len(table.rows) + 4*len(table.event) + 8*len(table.call) + 8*len(table.comms)
	if most := 20 * n; len(table.kinds) > 35 || bytes > most {
		t.Errorf("%d kinds and %d bytes, %d at most", len(table.kinds), bytes, most)
	}
}
