package telemetry

import "math"

// A Pace predicts the duration of a decode step from its load, in s: a + b·running + c·kv + d·prompts + e·prefills.
// No coefficient is negative. How many drafts are accepted depends on the text, so a token takes its share of the
// step.
type Pace [5]float64

// PaceFactors returns the factors of the coefficients of a Pace for the time per token of a stretch.
func PaceFactors(x *Stretch) [5]float64 {
	a := x.Accepted
	return [5]float64{1 / a, x.Running / a, x.KV / a, x.Prompts / a, x.Prefills / a}
}

// Takes returns the predicted time per token of a stretch, in s.
func (p *Pace) Takes(x *Stretch) (s float64) {
	for i, v := range PaceFactors(x) {
		s += p[i] * v
	}
	return s
}

// PaceOf fits a pace to stretches by least squares of relative errors, without outliers. Coefficients that would be
// negative are 0. ok is false if there are too few stretches.
func PaceOf(list []*Stretch) (p Pace, ok bool) {
	const few, far = 12, 2
	if len(list) < few {
		return p, false
	}
	use := list
	for range 3 {
		p = leastSquares(use)
		var near []*Stretch
		for _, x := range list {
			if want := p.Takes(x); x.Token < far*want && x.Token > want/far {
				near = append(near, x)
			}
		}
		if len(near) < few || len(near) == len(use) {
			break
		}
		use = near
	}
	return p, p.Takes(list[0]) > 0
}

// leastSquares drops the most negative coefficient until none is negative.
func leastSquares(list []*Stretch) (p Pace) {
	use := [5]bool{true, true, true, true, true}
	for {
		p = solve(list, use)
		worst := -1
		for i, v := range p {
			if use[i] && (v < 0 || math.IsNaN(v)) && (worst < 0 || v < p[worst]) {
				worst = i
			}
		}
		if worst < 0 {
			return p
		}
		use[worst] = false
	}
}

// solve solves the normal equations for the coefficients in use. Each stretch is weighted by its inverse square,
// because errors are relative.
func solve(list []*Stretch, use [5]bool) (p Pace) {
	var a [5][6]float64
	for _, x := range list {
		parts, w := PaceFactors(x), 1/(x.Token*x.Token)
		for i := range 5 {
			for k := range 5 {
				a[i][k] += w * parts[i] * parts[k]
			}
			a[i][5] += w * parts[i] * x.Token
		}
	}
	for i := range 5 {
		if use[i] && a[i][i] > 0 {
			a[i][i] *= 1 + 1e-9 // if two parts are the same, both get half
			continue
		}
		for k := range 5 {
			a[i][k], a[k][i] = 0, 0
		}
		a[i][i], a[i][5] = 1, 0
	}
	for i := range 5 {
		for k := range 5 {
			if k == i {
				continue
			}
			f := a[k][i] / a[i][i]
			for c := range 6 {
				a[k][c] -= f * a[i][c]
			}
		}
	}
	for i := range 5 {
		p[i] = a[i][5] / a[i][i]
	}
	return p
}
