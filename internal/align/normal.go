package align

import "math"

// normal is the system of normal equations of weighted least squares for values at
// the nodes of a graph, of which differences are observed along its edges. The
// value of node -1 is zero.
type normal struct {
	n   int
	m   []float64 // n x n, by rows
	rhs []float64
}

func newNormal(n int) *normal {
	return &normal{n: n, m: make([]float64, n*n), rhs: make([]float64, n)}
}

// add says that the value of b minus that of a was observed as v, with a standard
// error of se.
func (s *normal) add(a, b int, v, se float64) {
	w := 1 / (se * se)
	if a >= 0 {
		s.m[a*s.n+a] += w
		s.rhs[a] -= w * v
	}
	if b >= 0 {
		s.m[b*s.n+b] += w
		s.rhs[b] += w * v
	}
	if a >= 0 && b >= 0 {
		s.m[a*s.n+b] -= w
		s.m[b*s.n+a] -= w
	}
}

// solve returns the values and their variances: the solution and the diagonal of
// the inverse, by the Cholesky decomposition m = L L'. The graph is connected to
// node -1, which makes m positive definite.
func (s *normal) solve() (values, variances []float64) {
	n, l := s.n, s.m
	for i := range n {
		for j := 0; j <= i; j++ {
			sum := l[i*n+j]
			for k := range j {
				sum -= l[i*n+k] * l[j*n+k]
			}
			if i == j {
				l[i*n+i] = math.Sqrt(max(sum, math.SmallestNonzeroFloat64))
			} else {
				l[i*n+j] = sum / l[j*n+j]
			}
		}
	}
	values = make([]float64, n)
	copy(values, s.rhs)
	s.forward(values, 0)
	s.backward(values)
	variances = make([]float64, n)
	column := make([]float64, n)
	for i := range n { // (m^-1)ii = |L^-1 ei|^2
		clear(column)
		column[i] = 1
		s.forward(column, i)
		for _, v := range column[i:] {
			variances[i] += v * v
		}
	}
	return values, variances
}

// forward solves L x = v in place; v is zero before from.
func (s *normal) forward(v []float64, from int) {
	for i := from; i < s.n; i++ {
		for k := from; k < i; k++ {
			v[i] -= s.m[i*s.n+k] * v[k]
		}
		v[i] /= s.m[i*s.n+i]
	}
}

// backward solves L' x = v in place.
func (s *normal) backward(v []float64) {
	for i := s.n - 1; i >= 0; i-- {
		for k := i + 1; k < s.n; k++ {
			v[i] -= s.m[k*s.n+i] * v[k]
		}
		v[i] /= s.m[i*s.n+i]
	}
}
