package align

import "math"

// normal is the system of normal equations of weighted least squares for values at the nodes of a graph, given
// observed differences along its edges. The value of node -1 is zero.
//
// Nodes are in the order of a tree, parents first, and only few edges are outside of the tree. With leaves first,
// a row of the decomposition begins at its first neighbor, so most rows are short, however many hosts there are.
type normal struct {
	n        int
	observed []observation
	rows     []sparseRow
	rhs      []float64
}

// An observation is a measured difference v of the values of b and a, with standard error se. a and b are rows.
type observation struct {
	a, b  int
	v, se float64
}

// A sparseRow is a row of a triangular matrix from its first nonzero column to the diagonal.
type sparseRow struct {
	first  int
	values []float64
}

func (r *sparseRow) at(column int) *float64 { return &r.values[column-r.first] }

// add adds the observation that the values of b and a differ by v, with standard error se.
func (s *normal) add(a, b int, v, se float64) {
	s.observed = append(s.observed, observation{s.row(a), s.row(b), v, se})
}

// row returns the row of a node, and the node of a row; that of node -1 is n.
func (s *normal) row(node int) int { return s.n - 1 - node }

// build sets up the equations.
func (s *normal) build() {
	s.rows, s.rhs = make([]sparseRow, s.n), make([]float64, s.n)
	for i := range s.rows {
		s.rows[i].first = i
	}
	for _, o := range s.observed {
		if low, high := min(o.a, o.b), max(o.a, o.b); high < s.n {
			s.rows[high].first = min(s.rows[high].first, low)
		}
	}
	for i := range s.rows {
		s.rows[i].values = make([]float64, i+1-s.rows[i].first)
	}
	for _, o := range s.observed {
		w := 1 / (o.se * o.se)
		if o.a < s.n {
			*s.rows[o.a].at(o.a) += w
			s.rhs[o.a] -= w * o.v
		}
		if o.b < s.n {
			*s.rows[o.b].at(o.b) += w
			s.rhs[o.b] += w * o.v
		}
		if o.a < s.n && o.b < s.n {
			*s.rows[max(o.a, o.b)].at(min(o.a, o.b)) -= w
		}
	}
}

// solve returns the values and their variances: the solution, and the diagonal of the inverse, by the
// Cholesky decomposition m = L L'. The graph is connected to node -1, which makes m positive definite.
func (s *normal) solve() (values, variances []float64) {
	s.build()
	for i := range s.rows {
		row := &s.rows[i]
		for j := row.first; j <= i; j++ {
			other := &s.rows[j]
			sum := *row.at(j)
			for k := max(row.first, other.first); k < j; k++ {
				sum -= *row.at(k) * *other.at(k)
			}
			if i == j {
				sum = math.Sqrt(max(sum, math.SmallestNonzeroFloat64))
			} else {
				sum /= *other.at(j)
			}
			*row.at(j) = sum
		}
	}
	solved := append([]float64{}, s.rhs...)
	s.forward(solved, 0)
	s.backward(solved)
	values, variances = make([]float64, s.n), make([]float64, s.n)
	column := make([]float64, s.n)
	for i := range s.n { // (m^-1)ii = |L^-1 ei|^2
		clear(column)
		column[i] = 1
		s.forward(column, i)
		node := s.row(i)
		for _, v := range column[i:] {
			variances[node] += v * v
		}
		values[node] = solved[i]
	}
	return values, variances
}

// forward solves L x = v in place; v is zero before from.
func (s *normal) forward(v []float64, from int) {
	for i := from; i < s.n; i++ {
		row := &s.rows[i]
		for k := max(from, row.first); k < i; k++ {
			v[i] -= *row.at(k) * v[k]
		}
		v[i] /= *row.at(i)
	}
}

// backward solves L' x = v in place.
func (s *normal) backward(v []float64) {
	for i := s.n - 1; i >= 0; i-- {
		row := &s.rows[i]
		v[i] /= *row.at(i)
		for k := row.first; k < i; k++ {
			v[k] -= *row.at(k) * v[i]
		}
	}
}
