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
	known    bool       // the first day is that of a stamp with a date
}

// clocked reads a line whose stamp has no year: of SGLang until 2024, with the time of day, "[16:43:29 TP0] Decode batch. ..", or of its
// servers of diffusion models, "[12-16 14:27:08] ..": around is the text before it.
func (r *reader) clocked(b, around []byte) bool {
	const stamp, dated, most = len("[15:04:05"), len("[01-02 15:04:05"), 64
	end := bytes.IndexByte(b[:min(len(b), most)], ']')
	if end < stamp || b[0] != '[' {
		return false
	}
	n := stamp
	clock, ok := logline.ClockOf(b[1:])
	if !ok {
		if n = dated; end < dated || b[3] != '-' || b[6] != ' ' {
			return false
		}
		if clock, ok = r.yearless(b[1:]); !ok {
			return false
		}
	}
	ns, more, grain := logline.Fraction(b[n:end])
	header := b[n+more : end]
	if len(header) > 0 && header[0] != ' ' {
		return false
	}
	w := r.around.Unwrap(around)
	if n == stamp {
		clock += r.midnight(clock, w.At)
	}
	r.body(bytes.TrimLeft(b[end+1:], " "), r.place(clock+ns, w, grain), r.placeOf(header, w))
	return true
}

// midnight returns the midnight before a stamp: the one that makes the stamp nearest to the time of collection, or of the first
// one to the first stamp of the log with a date; else the last possible one before the file was written. Ranks write concurrently, so that lines may be out of
// order by less than a minute; a clock that goes back further has passed midnight.
func (r *reader) midnight(clock, collected trace.Time) trace.Time {
	const disorder = trace.Time(time.Minute)
	u := &r.undated
	if u.midnight == 0 && collected == 0 {
		collected = r.firstDated()
		u.known = collected != 0
	}
	if collected != 0 {
		near := (collected - clock + day/2) / day * day
		if !u.known || u.midnight != 0 {
			return near
		}
		u.midnight, u.clock = near, clock
	}
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

// firstDated returns the first stamp with a date at the beginning of a line in the head of the log, or after a level, as vLLM's libraries
// write it; 0 if there is none.
func (r *reader) firstDated() trace.Time {
	for line := range bytes.Lines(r.head) {
		line = bytes.TrimPrefix(line, []byte("["))
		var stamps logline.Stamper
		if at, ok := stamps.Read(line); ok {
			return at
		}
		if level := logline.LevelOf(line); level != nil && isMonthDay(line[len(level)+1:]) {
			if at, ok := r.yearless(line[len(level)+1:]); ok {
				return at
			}
		}
	}
	return 0
}

// dated moves all stamps without dates so that the last one, not the first, is at its last possible time before the file
// was written.
func (r *reader) dated() {
	u := &r.undated
	if u.midnight == 0 || u.known {
		return
	}
	r.f.Shift(logline.LastDay(r.in.Path, u.clock) - u.midnight)
	r.f.Source().Undated = true
}
