// Package requestlog reads what SGLang's servers log about each request: the scheduler's line about a finished request, the
// records of --export-metrics-to-file and --log-requests-format json, and the text of --log-requests.
package requestlog

import (
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Reader adds the requests of one log to its records. Its memory does not grow with the log.
type Reader struct {
	Read     int // number of records
	Damaged  int // pieces of lines that were overwritten by others
	Timeless int // records with durations but no times

	f       *series.Filler
	rows    *spantable.RequestFiller
	stamps  *logline.Stamper
	strange func()
	text    []byte // without quotes, reused
}

// New returns a reader for a log whose series f fills; strange is called for each line about a request of an unknown kind.
func New(f *series.Filler, rows *spantable.RequestFiller, stamps *logline.Stamper, strange func()) *Reader {
	return &Reader{f: f, rows: rows, stamps: stamps, strange: strange}
}

// A Line is the time and the source of a line.
type Line struct {
	At    trace.Time // 0 is unknown
	Place int32      // index in the series' places
	N     uint32     // number of the line, from 1
}
