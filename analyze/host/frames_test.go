package host

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Frames come out in the order of a stable sort, however far out of order they were,
// across runs, chunks, and streams, for any buffer size.
func TestFramesInOrder(t *testing.T) {
	for seed, late := range []int64{0, 1, 50, windowSize - 1, 5 * windowSize, 100_000} {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var all Frames
		var want []Frame
		for range 2 {
			var stream Frames
			for _, kind := range []Kind{CallFrame, RangeFrame, PythonFrame, StackFrame} {
				for i := range r.Int64N(20_000) {
					from := trace.Time(i - r.Int64N(late+1))
					f := Frame{from, from + 1 + trace.Time(r.Int64N(5)), r.Int64N(1 << 40), trace.Sym(r.Uint32()), kind}
					stream.Add(f)
					want = append(want, f)
				}
			}
			all.Join(&stream)
		}
		slices.SortStableFunc(want, compareFrames)
		q := all.Settle()
		if q.Len() != len(want) {
			t.Fatalf("late by %d: %d frames, want %d", late, q.Len(), len(want))
		}
		var got []Frame
		for q.Len() > 0 {
			got = append(got, q.Next(make([]Frame, 1+r.IntN(1000)))...)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("late by %d: frame %d is %v, want %v", late, i, got[i], want[i])
			}
		}
	}
}

// Frames with extreme times and numbers survive packing.
func TestPackedExtremes(t *testing.T) {
	want := []Frame{
		{math.MinInt64, math.MaxInt64, math.MaxInt64, math.MaxUint32, PageableFrame},
		{math.MinInt64, math.MinInt64 + 1, math.MinInt64, 0, PageableFrame},
		{math.MaxInt64 - 1, math.MaxInt64, -1, 1, PageableFrame},
	}
	var frames Frames
	for _, f := range want {
		frames.Add(f)
	}
	if got := frames.Settle().Next(make([]Frame, 9)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A long, nearly sorted run packs to at most a third of the size of its frames.
func TestPackedSize(t *testing.T) {
	const frames = 10_000
	var all Frames
	for i := range int64(frames) {
		from := trace.Time(i*20_000 - i%7*30_000)
		all.Add(Frame{from, from + 7000, i, 300, CallFrame})
	}
	all.pack(0)
	size := 0
	for _, c := range all.runs[0].chunks {
		size += cap(c)
	}
	if size > frames*32/3 || all.runs[0].unsorted {
		t.Errorf("%d frames take %d bytes, sorted later: %v", frames, size, all.runs[0].unsorted)
	}
}
