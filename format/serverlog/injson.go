package serverlog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// inJSON reads the line in a JSON record, with the record's time if the line has none of its own.
func (r *reader) inJSON(b []byte) bool {
	if r.nested || !logline.IsRecord(b) {
		return false
	}
	x, ok := logline.RecordOf(b)
	if !ok {
		return false
	}
	at, _, ok := r.around.Outer.Zoned(x.Time)
	if n := jsonscan.UnixNano(string(x.Time)); !ok && n != 0 {
		at, ok = trace.Time(n), true
	}
	if ok {
		zone := &r.f.Source().Zone
		if zone.By == "" && !zone.Local {
			zone.By = "stamps with a zone"
		}
		r.f.Within(0)
		r.now = at
		r.f.Saw(at)
	}
	said := bytes.TrimRight(jsonscan.Unescape(nil, x.Message), "\r\n")
	level := bytes.ToUpper(x.Level)
	var about []byte
	if x.Error != nil {
		about = jsonscan.Unescape(nil, x.Error)
	}
	r.recorded(said, level, about, string(x.Source))
	return true
}

// recorded reads the message of a record, which has its level, its error, and its source in separate fields.
func (r *reader) recorded(said, level, about []byte, source string) {
	if errortext.IsErrorLevel(level) && eventWords.First(said[:min(len(said), lookedAt)]) < 0 && !errortext.IsTraceback(said) {
		if len(about) > 0 {
			said = append(append(said, ": "...), about...)
		}
		r.complain(said, r.now, r.spot(), source)
		r.read++
		return
	}
	r.nested = true
	r.takeNested(said, level)
	r.nested = false
}

// A tabbed is a line of zap in its console format,
// "2026-08-17T20:53:20.123Z<tab>ERROR<tab>setup<tab>runner.go:12<tab>cannot start<tab>{"error": "no pod"}".
type tabbed struct {
	stamp, level, source string
	said, about          []byte
}

func tabbedOf(line []byte) (x tabbed, ok bool) {
	const most = 64 // longest stamp in bytes
	if i := bytes.IndexByte(line[:min(len(line), most)], '\t'); i < 0 || line[0] < '0' || line[0] > '9' {
		return x, false
	}
	parts := bytes.Split(line, []byte("\t"))
	if len(parts) < 3 {
		return x, false
	}
	x.stamp, x.level = string(parts[0]), strings.ToUpper(string(parts[1]))
	if rest := parts[2:]; zapLevels[x.level] {
		if fields := rest[len(rest)-1]; len(rest) > 1 && bytes.HasPrefix(fields, []byte("{")) {
			_, _ = jsonscan.Members(fields, 0, func(key, value []byte) {
				if slices.Contains(logline.ErrorKeys, string(key)) && x.about == nil {
					x.about = jsonscan.Text(value)
				}
			})
			rest = rest[:len(rest)-1]
		}
		x.said = slices.Clone(rest[len(rest)-1])
		if len(rest) > 1 {
			x.source = string(rest[len(rest)-2])
		}
	}
	if strings.HasSuffix(x.level, "PANIC") {
		x.level = "FATAL"
	}
	return x, len(x.said) > 0
}

// zapLevels are the levels of zap.
var zapLevels = map[string]bool{"DEBUG": true, "INFO": true, "WARN": true, "ERROR": true, "DPANIC": true, "PANIC": true, "FATAL": true}

// tabs reads such a line.
func (r *reader) tabs(b []byte) bool {
	x, ok := tabbedOf(b)
	if !ok {
		return false
	}
	at, _, zoned := r.around.Outer.Zoned([]byte(x.stamp))
	if n := jsonscan.UnixNano(x.stamp); !zoned && n != 0 {
		at, zoned = trace.Time(n), true
	}
	if zoned {
		r.f.Within(1e6)
		r.now = at
		r.f.Saw(at)
	}
	r.recorded(x.said, []byte(x.level), x.about, x.source)
	return true
}

// takeNested reads a line inside a record. A line without a stamp of its own has the time of the record.
func (r *reader) takeNested(b, level []byte) {
	if stampIn(b) < 0 && logline.LevelOf(b) == nil && len(level) > 0 {
		r.leveled(b, level, r.now, r.spot())
		return
	}
	r.take(b)
}
