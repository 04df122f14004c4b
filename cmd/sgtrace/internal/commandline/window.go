package commandline

import (
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// A Window is the window of time in --from and --to; "" is no bound. Its times may be relative to the first
// or last event of the input.
type Window struct{ From, To string }

// Check reports mistakes before anything is read. zone applies to times without one.
func (w Window) Check(zone *time.Location) error {
	from, err := readMoment("--from", w.From, zone)
	if err != nil {
		return err
	}
	to, err := readMoment("--to", w.To, zone)
	if err != nil || w.From == "" || w.To == "" || from.kind != to.kind {
		return err
	}
	_, _, err = w.Resolve(1, 1, zone)
	return err
}

// Words describes the window: " from +10s to +20s".
func (w Window) Words() (text string) {
	if w.From != "" {
		text += " from " + w.From
	}
	if w.To != "" {
		text += " to " + w.To
	}
	return text
}

// Resolve returns the bounds as instants, for an input with the given first and last event; 0 is no bound.
// zone applies to times without one. Its errors are of type [UsageError].
func (w Window) Resolve(first, last trace.Time, zone *time.Location) (from, to trace.Time, err error) {
	if from, err = Instant("--from", w.From, first, last, zone); err != nil {
		return 0, 0, err
	}
	if to, err = Instant("--to", w.To, first, last, zone); err != nil {
		return 0, 0, err
	}
	if from != 0 && to != 0 && from > to {
		return 0, 0, Usage("--from %s is after --to %s", w.From, w.To)
	}
	return from, to, nil
}

// Instant returns the time in a flag, for an input with the given first and last event; 0 if text is empty.
// Its errors are of type [UsageError].
func Instant(flag, text string, first, last trace.Time, zone *time.Location) (trace.Time, error) {
	m, err := readMoment(flag, text, zone)
	if text == "" || err != nil {
		return 0, err
	}
	at := m.at
	switch start := time.Unix(0, int64(first)).In(zone); m.kind {
	case fromBegin:
		at = start.Add(m.offset)
	case fromEnd:
		at = time.Unix(0, int64(last)).Add(-m.offset)
	case timeOfDay:
		at = time.Date(start.Year(), start.Month(), start.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), zone)
	}
	if !inReach(at) {
		return 0, wrongTime(flag, text, false)
	}
	return trace.Time(at.UnixNano()), nil
}

// A moment is a time in a flag, which may become an instant only with an input.
type moment struct {
	kind   momentKind
	at     time.Time
	offset time.Duration
}

type momentKind uint8

const (
	anInstant momentKind = iota
	fromBegin            // +10s: after the first event
	fromEnd              // -10m: before the last event
	timeOfDay            // 20:53: on the day of the first event
)

// layouts are the accepted formats of times; those without a date are times of day.
var layouts = []struct {
	layout string
	kind   momentKind
}{
	{time.RFC3339Nano, anInstant}, {"2006-01-02T15:04Z07:00", anInstant},
	{"2006-01-02 15:04:05.999999999", anInstant}, {"2006-01-02 15:04", anInstant}, {"2006-01-02", anInstant},
	{"15:04:05.999999999", timeOfDay}, {"15:04", timeOfDay},
}

// readMoment parses a time in any of the accepted formats; times without a zone are in zone.
func readMoment(flag, text string, zone *time.Location) (m moment, err error) {
	if text == "" {
		return m, nil
	}
	if rest, plus := strings.CutPrefix(text, "+"); plus {
		m.offset, err = time.ParseDuration(rest)
		m.kind = fromBegin
		return m, wrongTime(flag, text, err == nil)
	}
	if rest, minus := strings.CutPrefix(text, "-"); minus {
		m.offset, err = time.ParseDuration(rest)
		m.kind = fromEnd
		return m, wrongTime(flag, text, err == nil && m.offset >= 0)
	}
	at, ok := unixSeconds(text)
	if ok {
		return moment{at: at}, wrongTime(flag, text, inReach(at))
	}
	for _, l := range layouts {
		for _, written := range [...]string{text, strings.Replace(text, "T", " ", 1)} {
			if at, err := time.ParseInLocation(l.layout, written, zone); err == nil {
				return moment{kind: l.kind, at: at}, wrongTime(flag, text, l.kind == timeOfDay || inReach(at))
			}
		}
	}
	return m, wrongTime(flag, text, false)
}

// inReach reports whether a [trace.Time] can represent a time: from 1678 to 2262.
func inReach(at time.Time) bool { return time.Unix(0, at.UnixNano()).Equal(at) }

// wrongTime returns nil if right is set, or else the error about a time in no accepted format.
func wrongTime(flag, text string, right bool) error {
	if right {
		return nil
	}
	return Usage("%s %q: want 20:53, 20:53:20, 2026-08-17T20:53:20Z, Unix seconds, +10s from the beginning, or -10m from the end", flag, text)
}

// unixSeconds parses seconds since 1970, with a fraction of up to nine digits.
func unixSeconds(text string) (at time.Time, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	sec, err := strconv.ParseUint(whole, 10, 34) // larger numbers are milliseconds, which are not accepted
	ns, err2 := strconv.ParseUint((fraction + "000000000")[:max(9, len(fraction))], 10, 30)
	return time.Unix(int64(sec), int64(ns)), err == nil && err2 == nil
}
