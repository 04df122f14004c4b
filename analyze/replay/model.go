package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Model predicts the duration of a step: Base ns, and a number of ns per unit of each feature.
type Model struct {
	Base                           float64
	New, Requests, Context, Joined float64
	Steps                          int     // number of steps that it is fitted to; 0 is no model
	Off                            float64 // median relative error
}

// Of returns the predicted duration of a step, in ns.
func (m *Model) Of(f Features) float64 {
	return max(1000, m.Base+m.New*float64(f.New)+m.Requests*float64(f.Requests)+m.Context*float64(f.Context)+m.Joined*float64(min(1, f.Joined)))
}

// row returns the regressors for the coefficients.
func (f Features) row() [5]float64 {
	return [5]float64{1, float64(f.New), float64(f.Requests), float64(f.Context), float64(min(1, f.Joined))}
}

// A Timed is the features of a step, and how long it took, in ns.
type Timed struct {
	Features
	Took int64
}

// Timed returns s for fitting a model.
func (s *Step) Timed() Timed { return Timed{s.Features, s.took()} }

func (s *Step) took() int64 { return max(1, int64(s.Done-s.Start)) }

// FitModel fits a model to steps by least squares of relative errors, iteratively reweighted so that outliers count
// less (Huber). No coefficient is negative: more work does not take less time.
func FitModel(steps []Timed) Model {
	used := [5]bool{true, true, true, true, true}
	if len(steps) == 0 {
		return Model{}
	}
	for {
		beta := solve(steps, used)
		worst, at := 0.0, -1
		for i := range beta {
			if used[i] && beta[i] < worst {
				worst, at = beta[i], i
			}
		}
		if at < 0 {
			m := Model{Base: beta[0], New: beta[1], Requests: beta[2], Context: beta[3], Joined: beta[4], Steps: len(steps)}
			off := order.EachRow(steps, func(s *Timed) float64 { return math.Abs(float64(s.Took)/m.Of(s.Features) - 1) })
			slices.Sort(off)
			m.Off = off[len(off)/2]
			return m
		}
		used[at] = false
	}
}

// solve does the weighted least squares.
func solve(steps []Timed, used [5]bool) [5]float64 {
	weights := make([]float64, len(steps))
	for i := range weights {
		weights[i] = 1
	}
	var beta [5]float64
	all := order.EachRow(steps, func(s *Timed) int64 { return s.Took })
	floor := float64(distribution.LowerMedian(all)) / 4 // shorter times are not known more precisely
	const rounds = 8
	for range rounds {
		var a [5][6]float64
		for i := range steps {
			x, y := steps[i].row(), float64(steps[i].Took)
			w := weights[i] / max(y*y, floor*floor)
			for p := range x {
				for q := range x {
					a[p][q] += w * x[p] * x[q]
				}
				a[p][5] += w * x[p] * y
			}
		}
		beta = gauss(a, used)
		errs := make([]float64, len(steps))
		m := Model{Base: beta[0], New: beta[1], Requests: beta[2], Context: beta[3], Joined: beta[4]}
		for i := range steps {
			errs[i] = math.Abs(m.Of(steps[i].Features)-float64(steps[i].Took)) / max(float64(steps[i].Took), floor)
		}
		sorted := slices.Clone(errs)
		slices.Sort(sorted)
		scale := max(1e-4, 2*sorted[len(sorted)/2])
		for i, e := range errs {
			weights[i] = min(1, scale/max(e, 1e-12))
		}
	}
	return beta
}

// gauss solves the normal equations for the columns in use. Coefficients of columns that do not vary are 0.
func gauss(a [5][6]float64, used [5]bool) (beta [5]float64) {
	var pivots []int
	whole := a
	for p := range a {
		if !used[p] || whole[p][p] == 0 || a[p][p] < 1e-9*whole[p][p] {
			continue
		}
		pivots = append(pivots, p)
		for q := range a {
			if q == p {
				continue
			}
			f := a[q][p] / a[p][p]
			for c := range a[q] {
				a[q][c] -= f * a[p][c]
			}
		}
	}
	for _, p := range pivots {
		beta[p] = a[p][5] / a[p][p]
	}
	return beta
}

// A timing gives the durations of steps of one kind on an engine: those of its model, times the relative error of the
// steps recorded at about that time.
type timing struct {
	model  Model
	starts []trace.Time
	off    []float64 // by step: recorded time divided by predicted time
	lead   []int64   // ns, by step: how much earlier than the last rank the lead rank ended it
	// models has the model of each step if they differ; nil if all have model.
	models []*Model
	// scale multiplies all durations.
	scale float64
}

// newTiming fits the timing of steps of one kind.
func newTiming(steps []Step) timing {
	timed := order.EachRow(steps, (*Step).Timed)
	t := timing{model: FitModel(timed), scale: 1}
	for i := range steps {
		t.starts = append(t.starts, steps[i].Start)
		t.lead = append(t.lead, int64(steps[i].Done-steps[i].End))
		t.off = append(t.off, float64(timed[i].Took)/t.model.Of(steps[i].Features))
	}
	return t
}

// fit fits the timings of an engine.
func (e *Engine) fit() {
	for k := range kinds {
		steps := order.Only(e.Steps, func(s Step) bool { return s.Kind == k })
		e.timing[k] = newTiming(steps)
	}
}

// A cursor moves through the steps of a timing during a replay.
type cursor struct {
	*timing
	next int
	luck bool // steps get the error of a random nearby step instead of their own
}

// window is the number of steps by which a recorded step may differ from the replayed time.
const window = 12

// take returns the duration of a step that begins at a time, and how much earlier the lead rank ends it, in ns.
// Recorded steps are used in order, so that without a change each gets its own error. If the replay drifts away from
// the recording, steps from about the same time are used. With luck, each step gets the error of a random nearby one:
// the loop then reaches its boundaries earlier or later than recorded, increasingly so from step to step, as it would
// in other runs.
func (c *cursor) take(f Features, at trace.Time, rng *rand.Rand) (took, lead int64) {
	n := len(c.off)
	if n == 0 {
		return 0, 0
	}
	i := c.next
	if i >= n || i > 0 && (c.starts[max(0, i-window)] > at || c.starts[min(n-1, i+window)] < at) {
		i = sort.Search(n, func(k int) bool { return c.starts[k] >= at })
		i = min(max(0, i+rng.IntN(window)-window/2), n-1)
	}
	c.next = i + 1
	if c.luck {
		i = min(max(0, i+rng.IntN(2*window+1)-window), n-1)
	}
	m := &c.model
	if c.models != nil {
		m = c.models[i]
	}
	took = max(1, int64(m.Of(f)*c.off[i]*c.scale))
	return took, min(took, c.lead[i])
}

// Model returns the model for steps of a kind on an engine.
func (e *Engine) Model(k Kind) Model { return e.timing[k].model }
