package changepoint

import "math"

// seeded returns a window and shorter ones inside it: in every layer they are
// shorter by the root of 2 and overlap by half, down to the shortest. There are
// about 7 n / shortest of them.
func seeded(w window, shortest int) []window {
	windows := []window{w}
	n := w.to - w.from
	for layer := 1; ; layer++ {
		length := float64(n) * math.Pow(2, -float64(layer)/2)
		if length < float64(max(2, shortest)) {
			return windows
		}
		count := 2*int(math.Ceil(math.Pow(2, float64(layer)/2))) - 1
		step := (float64(n) - length) / float64(count-1)
		for i := range count {
			from := w.from + int(float64(i)*step)
			to := min(w.to, w.from+int(math.Ceil(float64(i)*step+length)))
			windows = append(windows, window{from, to})
		}
	}
}
