package align

import (
	"math"
	"testing"
)

// In large clusters, one host that is not the reference shares collectives with all
// others. A dense matrix would take minutes.
func TestNormalOfManyHosts(t *testing.T) {
	const n, hub = 5_000, 0
	s := &normal{n: n}
	s.add(-1, hub, 5, 2)
	for i := 1; i < n; i++ {
		s.add(hub, i, float64(i), 1)
	}
	s.add(1, 2, 1, 1) // agrees with the others
	values, variances := s.solve()
	for _, i := range []int{hub, 1, 2, 3, n - 1} {
		want, variance := 5+float64(i), 5.0
		switch i {
		case hub:
			variance = 4
		case 1, 2:
			variance = 4 + 2./3 // one of three equal edges of a triangle, parallel to the path over the two others
		}
		if math.Abs(values[i]-want) > 1e-6 || math.Abs(variances[i]-variance) > 1e-6 {
			t.Errorf("host %d: %v, variance %v; want %v, %v", i, values[i], variances[i], want, variance)
		}
	}
}
