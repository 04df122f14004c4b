package inputs

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/clientrecord"
	"github.com/sgtrace/sgtrace/expertdump"
	"github.com/sgtrace/sgtrace/flightrecorder"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/jaegerjson"
	"github.com/sgtrace/sgtrace/kernellog"
	"github.com/sgtrace/sgtrace/kubeevents"
	"github.com/sgtrace/sgtrace/memorysnapshot"
	"github.com/sgtrace/sgtrace/ncclinspector"
	"github.com/sgtrace/sgtrace/nccllog"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/prometheus"
	"github.com/sgtrace/sgtrace/pyspy"
	"github.com/sgtrace/sgtrace/requestdump"
	"github.com/sgtrace/sgtrace/rocm/rocpd"
	"github.com/sgtrace/sgtrace/rocm/rocprof"
	"github.com/sgtrace/sgtrace/rocm/rpd"
	"github.com/sgtrace/sgtrace/routerlog"
	"github.com/sgtrace/sgtrace/serverlog"
	"github.com/sgtrace/sgtrace/serverstate"
	"github.com/sgtrace/sgtrace/zipkinjson"
)

// A Format is a kind of input, a row of [Formats].
type Format = format.Format

// Formats are what inputs can be, in the order in which they are tried. Every command
// reads what is listed here, and nothing else lists formats. What is told by its first bytes
// comes before what is searched for: a job leaves a thousand dumps of flight recorders.
var Formats = []*format.Format{rpd.Format, rocpd.Format, rocprof.Format, rocprof.Perfetto, nsysexport.Format, flightrecorder.Format, otlpjson.Format, jaegerjson.Format, zipkinjson.Format, requestdump.Format, expertdump.Format, pyspy.Format, memorysnapshot.Format, kubeevents.Format, ncclinspector.Format, clientrecord.Format, serverstate.Format, serverlog.Format, routerlog.Format, nccllog.Format, prometheus.Format, kernellog.Format, chrometrace.Format}

// notRead is the error of a command that does not read a format.
func notRead(f *format.Format) error {
	return fmt.Errorf("%w %s; use %s", errElsewhere, f.Name, f.For)
}

var errElsewhere = errors.New("looks like")

// sniff returns the format of a file with the given head, or nil. Zeros in front of text
// are blocks that never reached the disk; without text they are the missing first page of
// an export.
func sniff(head []byte) *format.Format {
	if rest := bytes.TrimLeft(head, "\x00"); len(rest) < len(head) {
		for _, f := range Formats {
			if f.Text && f.Sniff(format.Head{Bytes: rest}) {
				return f
			}
		}
	}
	if key := firstKey.FindSubmatch(head); key != nil {
		for _, f := range Formats {
			if f.FirstKey == string(key[1]) && f.Sniff(format.Head{Bytes: head}) {
				return f
			}
		}
	}
	return sniffHead(format.Head{Bytes: head})
}

// firstKey is how an object of JSON begins.
var firstKey = regexp.MustCompile(`^\s*\{\s*"(\w+)"`)

// sniffHead returns the first format that an input may be of, or nil.
func sniffHead(head format.Head) *format.Format {
	for _, f := range Formats {
		if f.Sniff(head) {
			return f
		}
	}
	return nil
}
