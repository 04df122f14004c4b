package convert

import (
	"bytes"

	"github.com/sgtrace/sgtrace/otlpjson"
)

// A Format is a kind of input.
type Format struct {
	Name string
	// Sniff tells whether the decompressed head of a file is of this format.
	Sniff func(head []byte) bool
	// Readable is false for formats that are only recognised, to say so.
	Readable bool
}

// Formats lists the formats in the order in which they are tried.
var Formats = []Format{
	{Name: "SQLite (Nsight Systems export)", Sniff: func(head []byte) bool { return bytes.HasPrefix(head, []byte("SQLite format 3\x00")) }},
	{Name: "OTLP", Sniff: otlpjson.Sniff, Readable: true},
	{Name: "Chrome JSON (PyTorch profiler)", Sniff: func(head []byte) bool {
		return bytes.Contains(head, []byte(`"traceEvents"`)) || bytes.Contains(head, []byte(`"ph"`))
	}},
}

// sniffBytes is how much of a file Sniff gets to see. A message's own first key
// is within the first bytes unless the head of the file is missing.
const sniffBytes = 64 << 10

// sniff returns the format of head, or nil.
func sniff(head []byte) *Format {
	for i := range Formats {
		if Formats[i].Sniff(head) {
			return &Formats[i]
		}
	}
	return nil
}
