package analyze

import "math"

// realCell is unknown when v is NaN or infinite.
func realCell(v float64) Cell { return Cell{Share: v, Unknown: math.IsNaN(v) || math.IsInf(v, 0)} }
