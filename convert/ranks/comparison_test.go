package ranks

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// serving returns the kernels of a decoding server: repeated layers in repeated steps.
func serving(seed uint64, steps int) moments {
	random := rand.New(rand.NewPCG(seed, 1))
	var m moments
	at := trace.Time(1_787_000_000_000_000_000)
	for range steps {
		for range 16 {
			for name := range trace.Sym(12) {
				dur := 2000 + int64(name)*1500 + int64(random.NormFloat64()*60)
				if name == 0 { // a collective, which waits for other ranks
					dur = 8000 + random.Int64N(60_000)
				}
				m.Start, m.Dur, m.Name = append(m.Start, at), append(m.Dur, dur), append(m.Name, name+1)
				at += trace.Time(dur + 900 + random.Int64N(200))
			}
		}
		at += trace.Time(400_000 + random.Int64N(20_000))
	}
	return m
}

// seen is a profiler's view of moments: with a clock error, over a part of the time, at some
// resolution, and without some of them.
type seen struct {
	offset   int64
	drift    float64
	from, to float64 // share of the recording; to = 0 means 1
	grain    int64
	without  trace.Sym // drops kernels from this name on
	jitter   int64
}

func (v seen) of(m moments) (out moments, which []int) {
	random := rand.New(rand.NewPCG(99, 7))
	for i := range m.Start {
		share := float64(i) / float64(m.len())
		if share < v.from || v.to > 0 && share >= v.to || v.without > 0 && m.Name[i] >= v.without {
			continue
		}
		at := m.Start[i] + trace.Time(v.offset) + trace.Time(v.drift*float64(m.Start[i]-m.Start[0]))
		if v.jitter > 0 {
			at += trace.Time(random.Int64N(v.jitter))
		}
		end := at + trace.Time(m.Dur[i])
		if v.grain > 1 {
			at, end = at/trace.Time(v.grain)*trace.Time(v.grain), end/trace.Time(v.grain)*trace.Time(v.grain)
		}
		out.Start, out.Dur, out.Name = append(out.Start, at), append(out.Dur, int64(end-at)), append(out.Name, m.Name[i])
		which = append(which, i)
	}
	return out, which
}

func settled(held, other moments) (*comparison, Shift, bool) {
	duplicates := newComparison(held, 0)
	for i := range other.Start {
		duplicates.observe(other.Name[i], other.Start[i], other.Dur[i])
	}
	shift, ok := duplicates.settle()
	return duplicates, shift, ok
}

// Whatever the clocks, and however short the common time, events that both profilers recorded are
// recognized, and no others.
func TestDuplicates(t *testing.T) {
	for name, c := range map[string]struct {
		held, other seen
		steps       int
		drift       int64 // ppb, of other relative to held
	}{
		"one clock":                     {seen{}, seen{}, 300, 0},
		"no session start":              {seen{}, seen{offset: -1_787_000_000_000_000_000}, 300, 0},
		"drift":                         {seen{}, seen{offset: 12_345_678, drift: 30e-6}, 3000, 30_000},
		"held has microseconds":         {seen{grain: 1000}, seen{offset: -7_000_123}, 300, 0},
		"both have microseconds":        {seen{grain: 1000}, seen{grain: 1000, offset: 5_000_000}, 300, 0},
		"other has microseconds":        {seen{}, seen{grain: 1000, offset: 55_000}, 300, 0},
		"half in common":                {seen{to: 0.6}, seen{from: 0.3, offset: 1_000_000}, 300, 0},
		"little in common":              {seen{to: 0.3}, seen{from: 0.27, offset: -3_000_000}, 300, 0},
		"held is short":                 {seen{from: 0.50, to: 0.52}, seen{offset: 999}, 300, 0},
		"other is short":                {seen{}, seen{from: 0.5, to: 0.52, offset: 999}, 300, 0},
		"other lacks kernels of graphs": {seen{}, seen{without: 4, offset: 100_000}, 300, 0},
		"held lacks kernels of graphs":  {seen{without: 4}, seen{offset: 100_000}, 300, 0},
		"starts differ a little":        {seen{}, seen{offset: 100_000, jitter: 300}, 300, 0},
		"one step":                      {seen{}, seen{offset: 77}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := serving(5, c.steps)
			held, heldWhich := c.held.of(all)
			other, otherWhich := c.other.of(all)
			duplicates, shift, ok := settled(held, other)
			if !ok {
				t.Fatal("no shift is found")
			}
			isHeld := map[int]int{}
			for k, i := range heldWhich {
				isHeld[i] = k
			}
			search := duplicates.begin()
			wrong, missed, common := 0, 0, 0
			for k, i := range otherWhich {
				want, in := isHeld[i]
				got, found := search.find(other.Name[k], other.Start[k], other.Dur[k])
				if in {
					common++
				}
				switch {
				case found && (!in || got != want):
					wrong++
				case !found && in:
					missed++
				}
			}
			t.Logf("shift %+v; %d in common, %d missed, %d wrong", shift, common, missed, wrong)
			if wrong > 0 || missed*100 > common {
				t.Errorf("of %d in common, %d are missed, and %d wrong", common, missed, wrong)
			}
			if by := shift.DriftPPB - c.drift; max(by, -by) > 500 {
				t.Errorf("the drift is %d ppb, want %d", shift.DriftPPB, c.drift)
			}
			middle := held.Start[held.len()/2]
			truth := c.other.offset - c.held.offset + int64(c.other.drift*float64(middle-all.Start[0]))
			if by := shift.offsetAt(middle) - truth; max(by, -by) > shift.Bound {
				t.Errorf("the shift is %d ns off, more than %d", by, shift.Bound)
			}
		})
	}
}

// Another rank runs the same kernels in the same steps, but with other durations.
func TestOtherRankIsNoDuplicate(t *testing.T) {
	a, b := serving(5, 200), serving(6, 200)
	if _, shift, ok := settled(a, b); ok {
		t.Errorf("two ranks are taken for one: %+v", shift)
	}
	b.Start, b.Dur, b.Name = nil, nil, nil
	if _, _, ok := settled(a, b); ok {
		t.Error("a shift to nothing is found")
	}
	if _, _, ok := settled(b, a); ok {
		t.Error("a shift of nothing is found")
	}
}

// Each held event is matched at most once.
func TestDuplicatesAreFoundOnce(t *testing.T) {
	all := serving(5, 20)
	duplicates, _, ok := settled(all, all)
	if !ok {
		t.Fatal("no shift is found")
	}
	search := duplicates.begin()
	if !search.has(all.Name[70], all.Start[70], all.Dur[70]) || search.has(all.Name[70], all.Start[70], all.Dur[70]) {
		t.Error("an event is not found, or found twice")
	}
	if !search.has(all.Name[3], all.Start[3], all.Dur[3]) {
		t.Error("an earlier event is not found")
	}
}

func BenchmarkDuplicates(b *testing.B) {
	all := serving(5, 5000)
	b.ReportAllocs()
	for b.Loop() {
		duplicates, _, _ := settled(all, all)
		search := duplicates.begin()
		for i := range all.Start {
			search.has(all.Name[i], all.Start[i], all.Dur[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(all.len()), "ns/event")
}
