package serverlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// inJSON reads a line that a record in JSON has, with its time where the line has none of its own.
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
	if errortext.IsErrorLevel(level) && eventWords.first(said[:min(len(said), lookedAt)]) < 0 && !errortext.IsTraceback(said) {
		if x.Error != nil {
			said = append(append(said, ": "...), jsonscan.Unescape(nil, x.Error)...)
		}
		r.complain(said, r.now, r.spot(), string(x.Source))
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
