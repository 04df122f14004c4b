package logline

import (
	"bytes"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// Digits parses n digits at the beginning of b; ok is false if there are other bytes.
func Digits(b []byte, n int) (v int, ok bool) {
	if len(b) < n {
		return 0, false
	}
	for _, c := range b[:n] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + int(c-'0')
	}
	return v, true
}

// DateTime is the length of a stamp, without decimals and zone.
const DateTime = len("2006-01-02 15:04:05")

// IsStamp reports whether b begins with a date and a time, separated by a blank or a T.
func IsStamp(b []byte) bool {
	return len(b) >= DateTime && b[0] == '2' && b[4] == '-' && b[7] == '-' && (b[10] == ' ' || b[10] == 'T') && b[13] == ':' && b[16] == ':'
}

// IndexLeveledStamp returns the start of a line's stamp that is followed by a level, as programs in Rust write it,
// "2026-02-26 13:00:06  WARN ", or by a record; -1 if there is none. Stamps before it are those of a log
// collector.
func IndexLeveledStamp(b []byte) int {
	const looked = 400
	b = b[:min(len(b), looked)]
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte("20"))
		if i < 0 {
			return -1
		}
		if from += i; IsStamp(b[from:]) {
			_, n, _ := Fraction(b[from+DateTime:])
			rest := bytes.TrimLeft(bytes.TrimPrefix(b[from+DateTime+n:], []byte("Z")), " ")
			if LevelOf(rest) != nil || bytes.HasPrefix(rest, []byte(`{"`)) { // labels that logcli puts before lines have no quote there
				return from
			}
		}
		from++
	}
}

// LevelOf returns the level at the beginning of b, followed by a blank or a colon and a blank; nil if there is
// none.
func LevelOf(b []byte) []byte {
	for _, level := range [...]string{"INFO", "WARN", "ERROR", "DEBUG", "TRACE", "WARNING", "CRITICAL"} {
		if rest, ok := bytes.CutPrefix(b, []byte(level)); ok && (bytes.HasPrefix(rest, []byte(" ")) || bytes.HasPrefix(rest, []byte(": "))) {
			return b[:len(level)]
		}
	}
	return nil
}

// RayLevel returns the level of a line of Ray's C++ code, "[2026-08-17 20:53:20,907 W 149 199] ", from the text after its
// stamp; nil for other lines.
func RayLevel(header []byte) []byte {
	if len(header) < 4 || header[0] != ' ' || header[2] != ' ' || header[3] < '0' || header[3] > '9' {
		return nil
	}
	switch header[1] {
	case 'W':
		return []byte("WARNING")
	case 'E', 'C', 'F':
		return []byte("ERROR")
	case 'I', 'D':
		return []byte("INFO")
	}
	return nil
}

// A Stamper parses stamps. It caches the last one, as most lines repeat its second.
type Stamper struct {
	text [DateTime]byte
	at   trace.Time
}

// Year returns the year of the last stamp; 0 if there was none.
func (s *Stamper) Year() int {
	year, _ := Digits(s.text[:], 4)
	return year
}

// Read parses "2026-08-22 14:03:05" as if it were UTC.
func (s *Stamper) Read(b []byte) (trace.Time, bool) {
	if !IsStamp(b) {
		return 0, false
	}
	if bytes.Equal(b[:DateTime], s.text[:]) {
		return s.at, true
	}
	year, ok1 := Digits(b, 4)
	month, ok2 := Digits(b[5:], 2)
	day, ok3 := Digits(b[8:], 2)
	clock, ok4 := ClockOf(b[11:])
	at, ok := At(year, month, day, clock)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok {
		return 0, false
	}
	s.at = at
	copy(s.text[:], b)
	return at, true
}

// At returns a time of a day, as if it were UTC; ok is false if there is no such day in this century or the
// next.
func At(year, month, day int, clock trace.Time) (at trace.Time, ok bool) {
	ok = month >= 1 && month <= 12 && day >= 1 && day <= 31 && year > 2000 && year <= 2200
	return trace.Time(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).UnixNano()) + clock, ok
}

// ClockOf parses "15:04:05" as the time since midnight.
func ClockOf(b []byte) (trace.Time, bool) {
	hour, ok1 := Digits(b, 2)
	if !ok1 || len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, false
	}
	minute, ok2 := Digits(b[3:], 2)
	second, ok3 := Digits(b[6:], 2)
	if !ok2 || !ok3 || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	return trace.Time(hour*3600+minute*60+second) * 1e9, true
}

// Fraction parses the decimals after a stamp, ".123456" or ",123", as ns; n is the number of bytes, and grain
// the value of the last decimal in ns.
func Fraction(b []byte) (ns trace.Time, n int, grain int64) {
	grain = 1e9
	if len(b) < 2 || b[0] != '.' && b[0] != ',' {
		return 0, 0, grain
	}
	n = 1
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		if grain > 1 {
			grain /= 10
			ns += trace.Time(int64(b[n]-'0') * grain)
		}
		n++
	}
	if n == 1 {
		return 0, 0, 1e9
	}
	return ns, n, grain
}

// Zoned parses an RFC 3339 stamp with a zone, as log collectors write it; n is its length.
func (s *Stamper) Zoned(b []byte) (at trace.Time, n int, ok bool) {
	at, ok = s.Read(b)
	if !ok {
		return 0, 0, false
	}
	ns, more, _ := Fraction(b[DateTime:])
	n = DateTime + more
	if n >= len(b) {
		return 0, 0, false
	}
	switch b[n] {
	case 'Z':
		return at + ns, n + 1, true
	case '+', '-':
		hour, ok1 := Digits(b[n+1:], 2)
		rest := n + 3
		if rest < len(b) && b[rest] == ':' {
			rest++
		}
		if !ok1 || rest > len(b) {
			return 0, 0, false
		}
		minute, ok2 := Digits(b[rest:], 2)
		if !ok2 {
			return 0, 0, false
		}
		east := trace.Time(hour*3600+minute*60) * 1e9
		if b[n] == '-' {
			east = -east
		}
		return at + ns - east, rest + 2, true
	}
	return 0, 0, false
}
