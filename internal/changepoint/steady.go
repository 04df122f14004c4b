package changepoint

// BitByBit returns the course along which values rise or fall steadily, the index at which that begins,
// and the sum of squares that it leaves unexplained. A rise takes the part steepest of the values or more: anything steeper is a jump.
func BitByBit(values []float64, steepest, level float64) (x Course, from int, left float64, ok bool) {
	n := len(values)
	list := make([]Observation, n)
	for i, v := range values {
		list[i] = Observation{From: float64(i), To: float64(i + 1), Value: v, Weight: 1}
	}
	x, _ = Courses([][]Observation{list})
	switch {
	case x.P > level:
		return x, 0, 0, false
	case x.Shape == Ramped:
	case x.Shape == Bent && float64(n)-x.At >= steepest*float64(n), x.Shape == Sloped && x.End-x.At >= steepest*float64(n):
		from = int(x.At)
	default:
		return x, 0, 0, false
	}
	for i, v := range values {
		left += Squares([]float64{v}, x.Level+x.Of(float64(i), float64(i+1)))
	}
	return x, from, left, true
}

// Unexplained returns the sum of squares that sudden changes leave unexplained.
func Unexplained(values []float64, list []Change) (left float64) {
	from := 0
	for i := 0; i <= len(list); i++ {
		to := len(values)
		if i < len(list) {
			to = list[i].At
		}
		sum := 0.0
		for _, v := range values[from:to] {
			sum += v
		}
		left += Squares(values[from:to], sum/max(1, float64(to-from)))
		from = to
	}
	return left
}

// Squares returns the sum of the squared differences between values and mean.
func Squares(values []float64, mean float64) (sum float64) {
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum
}
