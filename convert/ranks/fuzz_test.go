package ranks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// randomMoments turns every four bytes into an event: name, duration, and start.
func randomMoments(data []byte, grain int64) moments {
	var m moments
	at := trace.Time(1_775_000_000_000_000_000)
	for ; len(data) >= 4; data = data[4:] {
		at += trace.Time(int64(data[2])*grain + int64(data[3])*1000*grain)
		m.Start = append(m.Start, at)
		m.Dur = append(m.Dur, int64(data[1])*grain+int64(data[0])%7*100)
		m.Name = append(m.Name, trace.Sym(data[0]%16))
	}
	return m
}

// FuzzDuplicates compares recordings with nothing, something, or everything in common: nothing
// panics or hangs, a claimed constant shift is right, and nothing is matched twice.
func FuzzDuplicates(f *testing.F) {
	rich := make([]byte, 1600)
	for i := range rich {
		rich[i] = byte(i * i >> 3)
	}
	f.Add(rich, rich, int64(0), int64(0), false)
	f.Add(rich, rich[400:], int64(5_000_000_123), int64(0), true)
	f.Add(rich[:8], []byte{}, int64(-7), int64(1000), false)
	f.Add(make([]byte, 800), make([]byte, 800), int64(1<<40), int64(1_000_000_000), true)
	f.Fuzz(func(t *testing.T, a, b []byte, shift, near int64, coarse bool) {
		a, b = a[:min(len(a), 8000)], b[:min(len(b), 8000)]
		shift, near = shift%(1<<50), max(near, 0)
		grain := int64(1)
		if coarse {
			grain = 1000
		}
		clock := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("hangs with %d and %d events", len(a)/4, len(b)/4)) })
		defer clock.Stop()
		held, streamed := randomMoments(a, grain), randomMoments(b, 1)
		type outcome struct {
			shift Shift
			ok    bool
			found []int32
		}
		compare := func() (o outcome) {
			duplicates := newComparison(held, near)
			for i := range streamed.Start {
				duplicates.observe(streamed.Name[i], streamed.Start[i]+trace.Time(shift), streamed.Dur[i])
			}
			if o.shift, o.ok = duplicates.settle(); !o.ok {
				return o
			}
			search := duplicates.begin()
			for i := range streamed.Start {
				if at, ok := search.find(streamed.Name[i], streamed.Start[i]+trace.Time(shift), streamed.Dur[i]); ok {
					o.found = append(o.found, int32(at))
				}
			}
			return o
		}
		got := compare()
		if again := compare(); fmt.Sprint(got) != fmt.Sprint(again) {
			t.Fatalf("%+v, then %+v", got, again)
		}
		if !got.ok {
			return
		}
		if got.shift.Matches < minAnchors || got.shift.Bound < 0 {
			t.Fatalf("%+v", got.shift)
		}
		for _, at := range got.found {
			if int(at) >= held.len() || at < 0 {
				t.Fatalf("found at %d of %d", at, held.len())
			}
		}
		slices.Sort(got.found)
		if n := len(got.found); n != len(slices.Compact(got.found)) {
			t.Fatalf("%d are found, some of them twice", n)
		}
	})
}
