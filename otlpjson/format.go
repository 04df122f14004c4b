package otlpjson

import (
	"errors"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/spantable"
)

// Format is OTLP, as OpenTelemetry's exporters and the Collector write it to files.
var Format = &format.Format{
	Name:     "OTLP",
	Doc:      "OpenTelemetry span dumps: JSON in all forms, and the Collector's framed zstd and protobuf",
	For:      "'sgtrace merge', 'sgtrace convert otel2perfetto', or 'sgtrace report'",
	Convert:  "otel2perfetto",
	Sniff:    func(h format.Head) bool { return Sniff(h.Bytes) },
	Index:    index,
	Outline:  look,
	Noun:     "OTLP dump",
	Requests: true,
	Text:     true,
}

// index reads a dump into the spans of all.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	return &format.Source{}, errors.Join(Read(opt.Spans, in.Name, r), r.Close())
}

// look outlines a dump.
func look(in *format.Input, o *spantable.Outline) error {
	r, err := in.Open()
	if err != nil {
		return err
	}
	return errors.Join(Outline(o, in.Name, r), r.Close())
}
