package serverlog

import (
	"bytes"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/trace"
)

// day is the length of a day in ns.
const day = trace.Time(24 * time.Hour)

// undated tracks the days of stamps without a date.
type undated struct {
	midnight trace.Time // of the current day; 0 before the first stamp
	clock    trace.Time // of the previous stamp, since midnight
}

// clocked reads a line of SGLang until 2024, which has a time of day without a date, "[16:43:29 TP0] Decode batch. ..":
// around is the text before it.
func (r *reader) clocked(b, around []byte) bool {
	const stamp, most = len("[15:04:05"), 64
	if len(b) < stamp || b[0] != '[' {
		return false
	}
	clock, ok := logline.ClockOf(b[1:])
	end := bytes.IndexByte(b[:min(len(b), most)], ']')
	if !ok || end < stamp {
		return false
	}
	ns, n, grain := logline.Fraction(b[stamp:end])
	header := b[stamp+n : end]
	if len(header) > 0 && header[0] != ' ' {
		return false
	}
	w := r.around.Unwrap(around)
	at := r.place(r.midnight(clock, w.At)+clock+ns, w, grain)
	r.body(bytes.TrimLeft(b[end+1:], " "), at, r.placeOf(header, w))
	return true
}

// midnight returns the midnight before a stamp: the one that makes the stamp nearest to the time of collection or, if that
// is unknown, the last possible one before the file was written. Ranks write concurrently, so that lines may be out of
// order by less than a minute; a clock that goes back further has passed midnight.
func (r *reader) midnight(clock, collected trace.Time) trace.Time {
	const disorder = trace.Time(time.Minute)
	if collected != 0 {
		return (collected - clock + day/2) / day * day
	}
	u := &r.undated
	switch {
	case u.midnight == 0:
		u.midnight = logline.LastDay(r.in.Path, clock)
	case clock < u.clock-disorder:
		u.midnight += day
	case clock > u.clock+day-disorder: // another rank's line, from before midnight
		return u.midnight - day
	}
	u.clock = clock
	return u.midnight
}

// dated moves all stamps without dates so that the last one, not the first, is at its last possible time before the file
// was written.
func (r *reader) dated() {
	u := &r.undated
	if u.midnight == 0 {
		return
	}
	r.f.Shift(logline.LastDay(r.in.Path, u.clock) - u.midnight)
	r.f.Source().Undated = true
}
