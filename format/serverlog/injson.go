package serverlog

import (
	"bytes"
	"slices"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// Keys of records that programs and stores of logs make of lines: Dynamo and others that log in JSON, Loki, Google's and
// Amazon's, and docker.
var (
	keysOfTime    = []string{"time", "timestamp", "ts", "@timestamp", "asctime", "date"}
	keysOfLevel   = []string{"level", "severity", "levelname", "log.level"}
	keysOfMessage = []string{"message", "msg", "log", "line", "textPayload", "@message", "body"}
	keysOfError   = []string{"error", "err"} // what a message is about, in Go
	keysOfSource  = []string{"caller"}       // the file that wrote it, in Go
)

// isInJSON reports whether b begins with a record of a line: an object with a message, and a time or a level.
func isInJSON(b []byte) bool {
	const looked = 1000
	has := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(b[:min(len(b), looked)], []byte(`"`+key+`":`)) })
	}
	return len(b) > 0 && b[0] == '{' && has(keysOfMessage) && (has(keysOfTime) || has(keysOfLevel))
}

// inJSON reads a line that a record in JSON has, with its time where the line has none of its own.
func (r *reader) inJSON(b []byte) bool {
	if r.nested || !isInJSON(b) {
		return false
	}
	var stamp, level, message, about, source []byte
	_, err := jsonscan.Members(b, 0, func(key, value []byte) {
		for _, x := range [...]struct {
			keys []string
			to   *[]byte
		}{{keysOfTime, &stamp}, {keysOfLevel, &level}, {keysOfMessage, &message}, {keysOfError, &about}, {keysOfSource, &source}} {
			text := jsonscan.Quoted(value)
			if text == nil && x.to == &stamp {
				text = value // a number
			}
			if text != nil && *x.to == nil && slices.Contains(x.keys, string(key)) {
				*x.to = text
			}
		}
	})
	if err != nil || message == nil {
		return false
	}
	at, _, ok := r.around.Outer.Zoned(stamp)
	if n := jsonscan.UnixNano(string(stamp)); !ok && n != 0 {
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
	said := bytes.TrimRight(jsonscan.Unescape(nil, message), "\r\n")
	if level = bytes.ToUpper(level); isError(level) && eventWords.first(said[:min(len(said), lookedAt)]) < 0 && !isTraceback(said) {
		if about != nil {
			said = append(append(said, ": "...), jsonscan.Unescape(nil, about)...)
		}
		r.complain(said, r.now, r.spot(), string(source))
		r.read++
		return true
	}
	r.nested = true
	r.takeNested(said, level)
	r.nested = false
	return true
}

// takeNested reads a line that a record holds: one without a stamp of its own is of the time of the record.
func (r *reader) takeNested(b, level []byte) {
	if stampIn(b) < 0 && logline.LevelOf(b) == nil && len(level) > 0 {
		r.leveled(b, level, r.now, r.spot())
		return
	}
	r.take(b)
}
