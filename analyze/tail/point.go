package tail

import (
	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/metric"
)

// A Point is what makes one request slower than the usual ones.
type Point struct {
	Request int   // index into Set.Requests
	Value   int64 // of the metric, ns
	// Cause is the largest cause of extra time against requests around the median, as SlowRequest
	// has it. It has no meaning for a request that is not slower than these.
	Cause cause.Cause
}

// Points returns the requests that a comparison is of, in the order of Set.Requests.
// It is nil for gaps, which are not requests, and for too few values to compare.
func (t *Tail) Points(c *Comparison) []Point {
	if c.Metric == metric.ITL || c.Slow.N == 0 {
		return nil
	}
	var points []Point
	for i := range t.List {
		a := &t.List[i]
		if value := t.valueOf(a, c.Metric); value >= 0 {
			main, _ := c.mainCause(timeOf(a, c.Metric))
			points = append(points, Point{a.Request, value, main.Cause})
		}
	}
	return points
}
