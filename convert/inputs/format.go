package inputs

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/accesslog"
	"github.com/sgtrace/sgtrace/format/platform"
	"github.com/sgtrace/sgtrace/format/requestjson"
	"github.com/sgtrace/sgtrace/format/rocm"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/format/serverlog/enginelog"
	"github.com/sgtrace/sgtrace/format/serverlog/router"
	"github.com/sgtrace/sgtrace/format/sglang"
	"github.com/sgtrace/sgtrace/format/torchdump"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/otlpjson"
)

// A Format is a kind of input, a row of [Formats].
type Format = format.Format

// Formats lists the formats of inputs, in the order in which they are tried. Every command reads these, and
// nothing else lists formats. Formats that are recognized by their first bytes come before those that are
// searched for, since a job may leave a thousand dumps of flight recorders.
var Formats = []*format.Format{
	rocm.RPD, rocm.Rocpd, rocm.Rocprof, rocm.RocprofPerfetto, rocm.RocprofCSV, nsysexport.Format, torchdump.FlightRecorder,
	otlpjson.Format, requestjson.Jaeger, requestjson.Zipkin, sglang.RequestDump, sglang.ExpertDump, torchdump.PySpy,
	torchdump.MemorySnapshot, platform.Kubernetes, torchdump.Inspector, requestjson.Clients, sglang.ServerState,
	accesslog.Format, serverlog.Format, router.Format, enginelog.Format, torchdump.Log, platform.Prometheus, platform.NvidiaSMI, platform.Printed, platform.Kernel, chrometrace.Format,
	requestjson.Summary, // a server's log may contain one
	serverlog.Alone,     // others may quote a traceback
	serverlog.Program,   // any of them may have lines with a level
}

// notRead returns the error of a command that does not read a format.
func notRead(f *format.Format) error {
	return fmt.Errorf("%w %s; use %s", errElsewhere, f.Name, f.For)
}

var errElsewhere = errors.New("looks like")

// sniff returns the format of a file with the given head, or nil. Zeros before text are blocks that never
// reached the disk; without text, they are the missing first page of an export.
func sniff(head []byte) *format.Format {
	if rest := bytes.TrimLeft(head, "\x00"); len(rest) < len(head) {
		for _, f := range Formats {
			if f.Text && f.Sniff(rest) {
				return f
			}
		}
	}
	if key := firstKey.FindSubmatch(head); key != nil {
		for _, f := range Formats {
			if f.FirstKey == string(key[1]) && f.Sniff(head) {
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

// firstKey matches the beginning of a JSON object, up to its first key.
var firstKey = lazyregexp.New(`^\s*\{\s*"(\w+)"`)

// sniffFolder returns the format of a folder with files of these names that is a single input, or nil.
func sniffFolder(files []string) *format.Format {
	for _, f := range Formats {
		if f.Folder != nil && f.Folder(files) {
			return f
		}
	}
	return nil
}
