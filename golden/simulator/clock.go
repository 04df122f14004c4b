package simulator

import "math"

// Clock is what a host shows instead of true time:
//
//	shown = t + skew + drift/1e6·(t − since)
//
// The zero value shows true time.
type Clock struct {
	skew  int64   // ns that it is ahead at the time since
	drift float64 // ppm: µs that it gains per second
	since int64
}

// At returns what c shows at a true time.
func (c *Clock) At(t int64) int64 {
	return t + c.skew + int64(math.Round(c.drift*float64(t-c.since)/1e6))
}

// Length returns how long a piece of true time is by c.
func (c *Clock) Length(from, to int64) int64 { return c.At(to) - c.At(from) }

// Undo returns the true time at which c shows t, up to a nanosecond.
func (c *Clock) Undo(t int64) int64 {
	local := t - c.since - c.skew
	return c.since + local - int64(c.drift*float64(local)/(1e6+c.drift))
}
