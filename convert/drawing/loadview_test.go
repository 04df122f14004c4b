package drawing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/drawing/counters"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// The values of a series equal those counted nanosecond by nanosecond.
func TestSeries(t *testing.T) {
	const length = 2000
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		e := inputs.Extent{From: 1000, To: 1000 + length}
		var busy [length + 1]bool
		var level [length + 1]int
		var lanes [3][]inputs.Extent
		var steps []change
		for lane := range lanes {
			for at := e.From; ; {
				from := at + trace.Time(random.IntN(100))
				to := from + trace.Time(1+random.IntN(60))
				if at = to; to > e.To {
					break
				}
				lanes[lane] = append(lanes[lane], inputs.Extent{From: from, To: to})
				steps = append(steps, change{from, 1}, change{to, -1})
				for i := from; i < to; i++ {
					busy[i-e.From], level[i-e.From] = true, level[i-e.From]+1
				}
			}
		}
		sortSteps(steps)
		gotBusy, gotLevel := busyPieces(e, union(slices.Concat(lanes[:]...))), levelPieces(e, steps)
		width := int(gotBusy.Width)
		if width*counters.MostPieces < length || length/width*10 < counters.MostPieces || gotLevel.Width != gotBusy.Width {
			t.Fatalf("pieces of %d of %d ns", width, length)
		}
		for i := range gotBusy.Values {
			n, most := 0, 0
			for k := i * width; k < min((i+1)*width, length); k++ {
				if most = max(most, level[k]); busy[k] {
					n++
				}
			}
			if want := 100 * float64(n) / float64(width); math.Abs(gotBusy.Values[i]-want) > 1e-9 {
				t.Fatalf("piece %d is busy for %g %%, want %g", i, gotBusy.Values[i], want)
			}
			// After the last step, nothing is in progress, so there is no level.
			if got := gotLevel.Values[i]; int(got) != most {
				t.Fatalf("piece %d has level %g, want %d", i, got, most)
			}
		}
	}
}

// Arrivals add up to all requests on each side of a deployment, and every row says what it counts.
func TestLoadIsDrawn(t *testing.T) {
	set := simulated(t, 200)
	got := written(t, set, Options{})
	sums, names := map[string]float64{}, map[string]bool{}
	last := map[string]readback.Sample{}
	for i := range got.Samples {
		s := got.Samples[i]
		path := s.Track.Path()
		if !strings.HasPrefix(path, " Load > ") {
			continue
		}
		names[strings.TrimPrefix(path, " Load > ")] = true
		if before, ok := last[path]; ok && strings.Contains(path, "arrivals") {
			sums[path] += before.Value * float64(s.Time-before.Time) / 1e9
		}
		last[path] = s
	}
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	var want []string
	for _, what := range []string{"TTFT p90", "arrivals", "queued", "running"} {
		for _, of := range []string{"decode DP0", "decode DP1", "prefill"} {
			want = append(want, what+" · "+of)
		}
	}
	if !slices.Equal(all, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	var sides [2]float64
	for path, sum := range sums {
		if strings.Contains(path, "prefill") {
			sides[0] += sum
		} else {
			sides[1] += sum
		}
	}
	// Not every request reaches a scheduler.
	for _, sum := range sides {
		if sum < 180 || sum > 201 {
			t.Errorf("arrivals add up to %v, want about 200", fmt.Sprint(sides))
		}
	}
}
