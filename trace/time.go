package trace

import (
	"fmt"
	"time"
)

// Time is nanoseconds: on its input's own clock until clocks are aligned, Unix
// epoch (UTC) after that. Two Times may be compared only on the same [Clock].
type Time int64

// String formats t as an RFC 3339 instant in UTC with nanoseconds.
func (t Time) String() string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// FormatDuration renders ns for people, scaled to one unit with four
// significant digits or fewer: 823ns, 12.5us, 340.1ms, 2.02s.
func FormatDuration(ns int64) string {
	abs := ns
	if abs < 0 {
		abs = -abs
	}
	switch {
	case abs < 1e3:
		return fmt.Sprintf("%dns", ns)
	case abs < 1e6:
		return fmt.Sprintf("%.4gus", float64(ns)/1e3)
	case abs < 1e9:
		return fmt.Sprintf("%.4gms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.4gs", float64(ns)/1e9)
	}
}
