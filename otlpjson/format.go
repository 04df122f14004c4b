package otlpjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/otlpjson/beside"
	"github.com/sgtrace/sgtrace/request/spantable"
)

// Format is OTLP, as OpenTelemetry's exporters and the Collector write it to files.
var Format = &format.Format{
	Name:     "OTLP",
	Doc:      "OpenTelemetry span dumps: JSON in all forms, and the Collector's framed zstd and protobuf",
	For:      "'sgtrace merge', 'sgtrace convert otel2perfetto', or 'sgtrace report'",
	Convert:  "otel2perfetto",
	Sniff:    sniff,
	FirstKey: "resourceSpans",
	Index:    index,
	Outline:  prescan,
	Noun:     "OTLP dump",
	Requests: true,
	Text:     true,
}

// index reads a dump into the table of all spans.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	read := intake{Table: opt.Spans, limits: usual, blocks: usualBlocks}
	src := &format.Source{}
	if opt.Parts {
		read.beside = new(beside.Kept)
		src.Close = read.beside.Close
	}
	err = errors.Join(read.read(in.Name, r), r.Close())
	if err == nil && opt.Parts {
		src.Parts, err = read.beside.Parts(in.Name)
	}
	return src, err
}

// prescan outlines a dump.
func prescan(in *format.Input, o *spantable.Outline) error {
	return in.Read(func(r io.Reader) error { return Outline(o, in.Name, r) })
}

// onlyOTLP reports whether a key occurs in OTLP only. The head of any dump has such a key, even if rotation
// removed its beginning in the middle of a line.
func onlyOTLP(key []byte) bool {
	switch string(key) {
	case "resourceSpans", "resource_spans", "scopeSpans", "scope_spans",
		"startTimeUnixNano", "start_time_unix_nano",
		"resourceLogs", "resourceMetrics", "resourceProfiles", "parentSpanId",
		"instrumentationLibrarySpans":
		return true
	}
	return false
}

// sniff reports whether a file with the given (decompressed) head is an OTLP dump.
func sniff(head []byte) bool {
	if sniffFraming(head) != notFramed {
		return true
	}
	// The text between any two quotes may be a key, as it is unknown here which quotes open a string. One pass over
	// the head sees them all.
	quote := []byte{'"'}
	_, rest, found := bytes.Cut(head, quote)
	for found {
		var key []byte
		if key, rest, found = bytes.Cut(rest, quote); found && onlyOTLP(key) {
			return true
		}
	}
	return false
}

// Structural errors of an input. They end the current record; see parser.resync.
var (
	errBegins   = errors.New("another record begins inside this one")
	errHeadless = errors.New("a record without the document around it")
	errNoSpan   = errors.New("an object in the list of spans is not a span")
	errTooLong  = errors.New("a record that is longer than any real one")
)

// Errors of a record whose structure is intact. Only this record is lost.
var (
	errNumber   = errors.New("a number that is not valid")
	errID       = errors.New("an ID that is neither hex nor base64 of the right length")
	errType     = errors.New("a field of the wrong type")
	errRepeated = errors.New("a field that occurs twice, as if two spans ran together")
	errMissing  = errors.New("no trace id, span id, start or end")
	errProtobuf = errors.New("damaged protobuf")
)
