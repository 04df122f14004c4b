package jaegerjson

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format"
)

// Format is the JSON of Jaeger's query API and UI.
var Format = &format.Format{
	Name:     "Jaeger",
	Noun:     "Jaeger trace file",
	Doc:      "traces that Jaeger's UI or query API wrote as JSON",
	For:      "'sgtrace merge' or 'sgtrace report'",
	Sniff:    func(h format.Head) bool { return sniff(h.Bytes) },
	Index:    format.Spans("Jaeger JSON", read),
	Outline:  format.Prescan(read),
	Requests: true,
	Text:     true,
}

// sniff goes by two keys that nothing else has together.
func sniff(head []byte) bool {
	return bytes.Contains(head, []byte(`"traceID"`)) && bytes.Contains(head, []byte(`"operationName"`))
}
