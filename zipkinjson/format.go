package zipkinjson

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format"
)

// Format is Zipkin's JSON, version 2.
var Format = &format.Format{
	Name:     "Zipkin",
	Noun:     "Zipkin trace file",
	Doc:      "spans in Zipkin's JSON, version 2",
	For:      "'sgtrace merge' or 'sgtrace report'",
	Sniff:    func(h format.Head) bool { return sniff(h.Bytes) },
	Index:    format.Spans("Zipkin JSON", read),
	Outline:  format.Prescan(read),
	Requests: true,
	Text:     true,
}

// sniff goes by keys that nothing else has together.
func sniff(head []byte) bool {
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) }
	return has(`"traceId"`) && (has(`"localEndpoint"`) || has(`"timestamp"`) && has(`"duration"`) && has(`"id"`))
}
