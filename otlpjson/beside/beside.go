// Package beside keeps the logs and metrics that OTLP dumps contain besides spans, until other formats read
// them. Protobuf is converted to JSON on the way.
package beside

import (
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
)

// A Signal is a kind of data that a dump may contain besides spans.
type Signal uint8

const (
	Logs Signal = iota
	Metrics
	Signals // number of signals
)

// keys are the keys of the lists in documents, in OTLP's JSON mapping and in protobuf.
var keys = [Signals][2]string{{"resourceLogs", "resource_logs"}, {"resourceMetrics", "resource_metrics"}}

// Of returns the signal whose list has the key.
func Of(key string) (Signal, bool) {
	for s, k := range keys {
		if key == k[0] || key == k[1] {
			return Signal(s), true
		}
	}
	return 0, false
}

// Append appends a JSON element of the list, as a document of its own.
func (s Signal) Append(to, element []byte) []byte {
	to = append(append(append(to, `{"`...), keys[s][0]...), `":[`...)
	return append(append(to, element...), "]}\n"...)
}

// Kept holds the signals of an input. The zero value is empty.
type Kept struct{ of [Signals]memory.Spool }

// Add keeps documents. If that fails, [Kept.Parts] returns the error.
func (k *Kept) Add(s Signal, documents []byte) {
	if len(documents) > 0 {
		k.of[s].Write(documents)
	}
}

// Parts returns the kept signals of the input with a name.
func (k *Kept) Parts(name string) (parts []format.Part, err error) {
	for s := range k.of {
		spool := &k.of[s]
		if spool.Size() == 0 {
			continue
		}
		err = errors.Join(err, spool.End())
		parts = append(parts, format.Part{Name: name, Inside: keys[s][0], Open: func() (io.ReadCloser, error) { return spool.Open() }})
	}
	return parts, err
}

// Close frees what was kept.
func (k *Kept) Close() error { return errors.Join(k.of[Logs].Close(), k.of[Metrics].Close()) }
