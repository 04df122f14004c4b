package convert

import (
	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/otlpjson"
)

// A Format is a kind of input.
type Format struct {
	Name string
	// Sniff tells whether the decompressed head of a file is of this format.
	Sniff func(head []byte) bool
	// ReadBy is the command that reads it, where not every command does.
	ReadBy string
}

// The formats that inputs can have.
var (
	FormatSQLite = &Format{Name: "SQLite (Nsight Systems export)", Sniff: nsysexport.Sniff, ReadBy: "sgtrace merge"}
	FormatOTLP   = &Format{Name: "OTLP", Sniff: otlpjson.Sniff}
	FormatChrome = &Format{Name: "Chrome JSON (PyTorch profiler)", Sniff: chrometrace.Sniff, ReadBy: "sgtrace merge"}
)

// Formats lists the formats in the order in which they are tried.
var Formats = []*Format{FormatSQLite, FormatOTLP, FormatChrome}

// sniffBytes is how much of a file Sniff gets to see. A message's own first key
// is within the first bytes unless the head of the file is missing.
const sniffBytes = 64 << 10

// sniff returns the format of head, or nil.
func sniff(head []byte) *Format {
	for _, f := range Formats {
		if f.Sniff(head) {
			return f
		}
	}
	return nil
}
