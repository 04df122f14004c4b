package trace

import (
	"math/rand/v2"
	"testing"
)

// The windows of a trace together contain everything once, except that each contains its part of
// what crosses its boundaries.
func TestWindowsCoverTheTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	b, _ := newBuilder()
	group := b.Track(Track{Kind: KindGroup})
	var tracks []TrackID
	for range 3 {
		tracks = append(tracks, b.Track(Track{Parent: group, Kind: KindThread}))
	}
	counter := b.Track(Track{Parent: group, Kind: KindCounter})
	var ids []SliceID
	for range 500 {
		ids = append(ids, b.Slice(Slice{Time: Time(r.Int64N(1000)), Dur: r.Int64N(50), Track: tracks[r.IntN(3)]}, 0))
	}
	for i := range 100 {
		b.Instant(Instant{Time: Time(r.Int64N(1000)), Track: tracks[0]})
		b.Sample(Sample{Time: Time(10 * i), Value: float64(i), Track: counter})
		b.Flow(Flow{From: ids[2*i], To: ids[2*i+1]})
	}
	whole := b.Finish()
	busy, instants := int64(0), 0
	for _, s := range whole.Slices {
		busy += s.Dur
	}
	for from := Time(0); from < 1100; from += 100 {
		w := Window(whole, from, from+100)
		if err := Validate(w); err != nil {
			t.Fatal(err)
		}
		for _, s := range w.Slices[1:] {
			if s.Time < from || s.End() > from+100 {
				t.Fatalf("slice [%d, %d) in the window from %d", s.Time, s.End(), from)
			}
			busy -= s.Dur
		}
		instants += len(w.Instants)
		if from < 1000 {
			if first := w.Samples[0]; first.Time != from || first.Value != float64(from/10) {
				t.Errorf("the counter starts with %v at %d in the window from %d", first.Value, first.Time, from)
			}
		}
	}
	if busy != 0 || instants != 100 {
		t.Errorf("%d ns of slices are missing, and there are %d instants of 100", busy, instants)
	}
}

func TestWindowLeavesEmptyTracksOut(t *testing.T) {
	b, _ := newBuilder()
	early := b.Track(Track{Kind: KindProcess, Name: b.Intern("early")})
	late := b.Track(Track{Kind: KindProcess, Name: b.Intern("late")})
	b.Slice(Slice{Time: 0, Dur: 10, Track: early}, 0)
	b.Slice(Slice{Time: 90, Dur: 20, Track: late}, 0)
	w := Window(b.Finish(), 50, 100)
	if len(w.Tracks) != 2 || w.Syms.Name(w.Tracks[1].Name) != "late" || w.Slices[1].Dur != 10 {
		t.Errorf("tracks %v, slices %v", w.Tracks, w.Slices)
	}
	if a, ok := w.Args.Find(w.Slices[1].Args, w.Syms.Intern("true_end_ns")); !ok || a.Int() != 110 {
		t.Error("the true end is lost")
	}
}
