package trace

import (
	"strconv"
	"time"
)

// Time is nanoseconds: on the input's own clock until clocks are aligned, then since the Unix epoch (UTC).
// Two Times may be compared only on the same clock.
type Time int64

// String formats t as an RFC 3339 instant in UTC with nanoseconds.
func (t Time) String() string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// FormatDuration formats ns for people, in one unit with at most four significant digits: 823ns, 12.5us,
// 340.1ms, 2.02s.
func FormatDuration(ns int64) string { return string(AppendDuration(nil, ns)) }

// AppendDuration appends what [FormatDuration] returns.
func AppendDuration(b []byte, ns int64) []byte {
	switch abs := max(ns, -ns); {
	case abs < 1e3:
		return append(strconv.AppendInt(b, ns, 10), "ns"...)
	case abs < 1e6:
		return append(strconv.AppendFloat(b, float64(ns)/1e3, 'g', 4, 64), "us"...)
	case abs < 1e9:
		return append(strconv.AppendFloat(b, float64(ns)/1e6, 'g', 4, 64), "ms"...)
	case abs < 1e13:
		return append(strconv.AppendFloat(b, float64(ns)/1e9, 'g', 4, 64), "s"...)
	default: // hours, in whole seconds, since 'g' would switch to exponents
		return append(strconv.AppendInt(b, ns/1e9, 10), "s"...)
	}
}

// ByFrontend is the service.instance.id of servers that only a frontend reports about, as Dynamo's does for its
// workers: all of their times are on the frontend's clock.
const ByFrontend = "as its frontend has it"
