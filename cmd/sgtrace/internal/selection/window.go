package selection

import (
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/trace"
)

// A Window is a window of time as --from and --to give it; "" is no bound. Its times may be
// relative to the first event of the input.
type Window struct{ From, To string }

// Check finds mistakes before anything is read. zone is that of times without one.
func (w Window) Check(zone *time.Location) error {
	// Where the first of these stands tells the forms of times apart.
	form := func(text string) int { return strings.IndexAny(text, "+T:") }
	if w.From != "" && w.To != "" && form(w.From) == form(w.To) {
		_, _, err := w.Resolve(1, zone)
		return err
	}
	_, err := Instant("--from", w.From, 1, zone)
	if err == nil {
		_, err = Instant("--to", w.To, 1, zone)
	}
	return err
}

// Words tell which window is meant: " from +10s to +20s".
func (w Window) Words() (text string) {
	if w.From != "" {
		text += " from " + w.From
	}
	if w.To != "" {
		text += " to " + w.To
	}
	return text
}

// Resolve returns the bounds as instants of the input whose first event is given; 0 is no
// bound. zone is that of times without one. Its errors are of type [commandline.UsageError].
func (w Window) Resolve(first trace.Time, zone *time.Location) (from, to trace.Time, err error) {
	if from, err = Instant("--from", w.From, first, zone); err != nil {
		return 0, 0, err
	}
	if to, err = Instant("--to", w.To, first, zone); err != nil {
		return 0, 0, err
	}
	if from != 0 && to != 0 && from > to {
		return 0, 0, commandline.Usage("--from %s is after --to %s", w.From, w.To)
	}
	return from, to, nil
}

// Instant reads the time that a flag is given: RFC 3339, a date and time or a time of day in
// zone, Unix seconds, or an offset from the first event such as +10s. A time of day is on the
// day of the first event. It is 0 for no text. Its errors are of type
// [commandline.UsageError].
func Instant(flag, text string, first trace.Time, zone *time.Location) (trace.Time, error) {
	if text == "" {
		return 0, nil
	}
	start := time.Unix(0, int64(first)).In(zone)
	at, ok := unixSeconds(text)
	if rest, plus := strings.CutPrefix(text, "+"); plus {
		var d time.Duration
		d, err := time.ParseDuration(rest)
		at, ok = start.Add(d), err == nil
	} else if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		at, ok = t, true
	} else if t, err := time.ParseInLocation("2006-01-02 15:04:05.999999999", strings.Replace(text, "T", " ", 1), zone); err == nil {
		at, ok = t, true
	} else if t, err := time.Parse("15:04:05.999999999", text); err == nil {
		at, ok = time.Date(start.Year(), start.Month(), start.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone), true
	}
	if ns := at.UnixNano(); ok && time.Unix(0, ns).Equal(at) { // a Time reaches from 1678 to 2262
		return trace.Time(ns), nil
	}
	return 0, commandline.Usage("%s %q: want 2026-08-17T20:53:20Z, 20:53:20, Unix seconds, or +10s", flag, text)
}

// unixSeconds reads seconds since 1970, with a fraction of up to nine digits.
func unixSeconds(text string) (at time.Time, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	sec, err := strconv.ParseUint(whole, 10, 34) // more are milliseconds, which are not meant
	ns, err2 := strconv.ParseUint((fraction + "000000000")[:max(9, len(fraction))], 10, 30)
	return time.Unix(int64(sec), int64(ns)), err == nil && err2 == nil
}
