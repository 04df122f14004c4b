package logline

import (
	"bytes"
	"os"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// A Glog is the head of a line of PyTorch's C++ code,
// "[rank2]:[E1227 01:06:16.020753201 ProcessGroupNCCL.cpp:683] ": local time, without a year.
// Until 2.1 it was "[E ProcessGroupNCCL.cpp:828] ": then Month is 0.
type Glog struct {
	Rank       int32 // in the job; -1 is unknown
	Level      byte  // I, W, E, or F
	Month, Day int
	Clock      trace.Time // since midnight
	Grain      int64      // ns of the last decimal of Clock
}

// GlogOf parses such a head, wherever it begins within the first few hundred bytes of a line; rest is the text
// after it.
func GlogOf(b []byte) (g Glog, rest []byte, ok bool) {
	const looked = 300
	head := b[:min(len(b), looked)]
	for at := 0; ; at++ {
		i := bytes.IndexByte(head[at:], '[')
		if i < 0 || at+i+3 > len(head) {
			return g, nil, false
		}
		at += i
		level, next := head[at+1], head[at+2]
		if level != 'E' && level != 'W' && level != 'F' && level != 'I' || next != ' ' && (next < '0' || next > '9') {
			continue
		}
		if g, rest, ok = glogAt(b[at+2:]); ok {
			g.Rank, g.Level = rankBefore(b[:at]), level
			return g, rest, true
		}
	}
}

// PlainGlogOf parses the head of a line as glog itself writes it, "E0325 09:33:41.551047  8274
// worker_pool.cpp:294] ".
func PlainGlogOf(b []byte) (g Glog, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != 'E' && b[0] != 'W' && b[0] != 'F' && b[0] != 'I' || b[1] < '0' || b[1] > '9' {
		return g, nil, false
	}
	g, rest, ok = glogAt(b[1:])
	g.Rank, g.Level = -1, b[0]
	return g, rest, ok
}

// glogAt parses "1227 01:06:16.020753201 ProcessGroupNCCL.cpp:683] ".
func glogAt(b []byte) (g Glog, rest []byte, ok bool) {
	const most = 120
	end := bytes.Index(b[:min(len(b), most)], []byte("] "))
	if end < 0 {
		return g, nil, false
	}
	day, clock, _ := bytes.Cut(b[:end], []byte(" "))
	rest = b[end+2:]
	if len(day) == 0 {
		return g, rest, bytes.HasPrefix(clock, []byte("ProcessGroup"))
	}
	n, number := Digits(day, len(day))
	at, timed := ClockOf(clock)
	if !number || !timed || len(day) > 4 || n/100 < 1 || n/100 > 12 || n%100 < 1 || n%100 > 31 {
		return g, nil, false
	}
	ns, _, grain := Fraction(clock[len("15:04:05"):])
	return Glog{Month: n / 100, Day: n % 100, Clock: at + ns, Grain: grain}, rest, true
}

// rankBefore parses the rank before such a head, "[rank3]:".
func rankBefore(b []byte) int32 {
	i := bytes.LastIndex(b, []byte("[rank"))
	if i < 0 || !bytes.HasSuffix(b, []byte("]:")) {
		return -1
	}
	number := b[i+len("[rank") : len(b)-len("]:")]
	if n, ok := Digits(number, len(number)); ok && len(number) > 0 && len(number) < 8 {
		return int32(n)
	}
	return -1
}

// CutRank parses the rank that PyTorch puts before each line of the traceback of an uncaught exception,
// "[rank0]:     param = ..". A progress bar may precede the first one.
func CutRank(b []byte) (rank int32, rest []byte, ok bool) {
	const most = len("[rank1234567]:")
	line := b
	if bytes.HasSuffix(line, []byte(" (most recent call last):")) {
		line = line[max(0, bytes.LastIndex(line, []byte("[rank"))):]
	}
	end := bytes.IndexByte(line[:min(len(line), most)], ':') + 1
	if rank = rankBefore(line[:end]); rank < 0 || line[0] != '[' || end < len(line) && line[end] != ' ' {
		return 0, b, false
	}
	return rank, bytes.TrimPrefix(line[end:], []byte(" ")), true
}

// Time returns the time of a line in a given year, as if its clock were UTC.
func (g *Glog) Time(year int) trace.Time {
	at, _ := At(year, g.Month, g.Day, g.Clock)
	return at
}

// ModTime returns the modification time of the file at path; for a pipe, whose path is "", the current time.
func ModTime(path string) time.Time {
	if info, err := os.Stat(path); err == nil {
		return info.ModTime()
	}
	return time.Now()
}

// LastYear returns the last year in which a day was before the file at path was written.
func LastYear(path string, month time.Month, day int) int {
	written := ModTime(path)
	year := written.Year()
	if time.Date(year, month, day, 0, 0, 0, 0, time.UTC).After(written.Add(24 * time.Hour)) {
		year--
	}
	return year
}

// LastDay returns the midnight of the last day on which a clock showed a time before the file at path was
// written, as if that clock were UTC.
func LastDay(path string, clock trace.Time) trace.Time {
	const day = trace.Time(24 * time.Hour)
	return (trace.Time(ModTime(path).UnixNano()) - clock) / day * day
}
