package words

import (
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// zone is in which times are written. Like [time.Local], it is one for the whole program:
// sentences with times are made in every package, long before anybody knows who prints them.
var zone = time.UTC

// SetZone sets the zone in which times are written from now on. The program calls it once,
// before it reads anything; what programs read stays in UTC.
func SetZone(z *time.Location) { zone = z }

// Zone returns what [SetZone] set; before that, UTC.
func Zone() *time.Location { return zone }

// Clock returns t in the zone in which times are written.
func Clock(t trace.Time) time.Time { return time.Unix(0, int64(t)).In(zone) }

// At writes t. Near a change of the clocks, the offset from UTC follows: an hour is there
// twice that night.
func At(t trace.Time, layout string) string {
	const near = 24 * time.Hour
	c := Clock(t)
	from, to := c.ZoneBounds()
	if !from.IsZero() && c.Sub(from) < near || !to.IsZero() && to.Sub(c) < near {
		layout += " -07:00"
	}
	return c.Format(layout)
}

// Instant writes t to the nanosecond, with its date and the offset from UTC.
func Instant(t trace.Time) string {
	return Clock(t).Format("2006-01-02T15:04:05.000000000Z07:00")
}

// ZoneAt names the zone at a time: "UTC", "UTC+02:00".
func ZoneAt(t trace.Time) string {
	c := Clock(t)
	if _, offset := c.Zone(); offset == 0 {
		return "UTC"
	}
	return c.Format("UTC-07:00")
}

// Tenths writes two times to a tenth of a second, with their dates if these differ.
func Tenths(from, to trace.Time) (first, last string) {
	layout := TenthLayout
	if Clock(from).Format(time.DateOnly) != Clock(to).Format(time.DateOnly) {
		layout = time.DateOnly + " " + layout
	}
	return At(from, layout), At(to, layout)
}

// IsDate reports whether a time counts from 1970. One before 2000 counts from something else, as no
// capture is that old.
func IsDate(t trace.Time) bool { return Clock(t).Year() >= 2000 }

// Between writes a period: "2026-08-17 20:53:20.049 to 20:53:41.823 UTC". The zone is there
// twice if the clocks change in between.
func Between(from, to trace.Time) string {
	first, last := Clock(from), Clock(to)
	text, layout := first.Format(DateLayout), ClockLayout
	if first.Format(time.DateOnly) != last.Format(time.DateOnly) {
		layout = DateLayout
	}
	if ZoneAt(from) != ZoneAt(to) {
		text += " " + ZoneAt(from)
	}
	return text + " to " + last.Format(layout) + " " + ZoneAt(to)
}

// Were says when several things were, behind what they are: "are from 2026-08-17 20:53:20.049 to
// 20:53:41.823 UTC"; or how long they last, if their times are no dates.
func Were(from, to trace.Time) string {
	if !IsDate(to) {
		return "last " + Nearly(int64(to-from)) + ", and do not say when they began"
	}
	return "are from " + Between(from, to)
}
