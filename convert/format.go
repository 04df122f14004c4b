package convert

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/otlpjson"
)

// A Format is a kind of input.
type Format struct {
	Name string
	// Sniff tells whether the decompressed head of a file is of this format.
	Sniff func(head []byte) bool
	// For are the commands that read it.
	For string
}

// elsewhere is the error of a command that does not read the format.
func (f *Format) elsewhere() error {
	return fmt.Errorf("%w %s, which is for %s", errElsewhere, f.Name, f.For)
}

var errElsewhere = errors.New("looks like")

// The formats that inputs can have.
var (
	FormatSQLite = &Format{Name: "SQLite (Nsight Systems export)", Sniff: rows.Sniff, For: "'sgtrace merge', 'sgtrace convert nsys2perfetto' and 'sgtrace report --kernels' (--api, --nvtx, ...)"}
	FormatOTLP   = &Format{Name: "OTLP", Sniff: otlpjson.Sniff, For: "'sgtrace merge', 'sgtrace convert otel2perfetto' and 'sgtrace report'"}
	FormatChrome = &Format{Name: "Chrome JSON (PyTorch profiler)", Sniff: chrometrace.Sniff, For: "'sgtrace merge' and 'sgtrace report --kernels' (--api, --nvtx, ...)"}
)

// Formats lists the formats in the order in which they are tried.
var Formats = []*Format{FormatSQLite, FormatOTLP, FormatChrome}

// sniffBytes is how much of a file Sniff gets to see. A message's own first key
// is within the first bytes unless the head of the file is missing.
const sniffBytes = 64 << 10

// sniff returns the format of head, or nil. Zeros in front of text are blocks that never
// reached the disk; without text they are the missing first page of an export.
func sniff(head []byte) *Format {
	if rest := bytes.TrimLeft(head, "\x00"); len(rest) < len(head) {
		for _, f := range Formats {
			if f != FormatSQLite && f.Sniff(rest) {
				return f
			}
		}
	}
	for _, f := range Formats {
		if f.Sniff(head) {
			return f
		}
	}
	return nil
}
