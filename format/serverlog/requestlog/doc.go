// Package requestlog reads what SGLang's servers log about each request: the line of a scheduler that has finished it, the records of
// --export-metrics-to-file and --log-requests-format json, and the text that --log-requests prints.
package requestlog

import (
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Reader adds the requests of one log to its records. What it holds does not grow with the log.
type Reader struct {
	Read     int // records
	Damaged  int // pieces of lines that others wrote over
	Timeless int // records that say only how long, and not when

	f       *series.Filler
	rows    *spantable.RequestFiller
	stamps  *logline.Stamper
	strange func()
	text    []byte // without its quotation marks, used again
}

// New returns a reader for the log that f fills series of; strange is called for each line that tells of a request
// in words that nothing here knows.
func New(f *series.Filler, rows *spantable.RequestFiller, stamps *logline.Stamper, strange func()) *Reader {
	return &Reader{f: f, rows: rows, stamps: stamps, strange: strange}
}

// A Line is when and by whom a line was written.
type Line struct {
	At    trace.Time // 0 is not told
	Place int32      // of the series' places
	N     uint32     // from 1
}
