package serverlog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// dumped is the source in which vLLM prints what it had scheduled when its engine failed.
const dumped = "dump_input.py"

// complain keeps a line that its program calls an error, and reports whether it did. What source names is the file or module that wrote it;
// "" is not told.
func (r *reader) complain(b []byte, at trace.Time, place int32, source string) bool {
	return r.isWhole(b, source) && r.complaints.Add(errortext.Said(b, source), series.Instant{Time: at, Place: place, Line: uint32(r.line)})
}

// isWhole reports whether a line is not a piece of what stood before, or how that ends.
func (r *reader) isWhole(b []byte, source string) bool {
	return len(b) > 0 && !strings.Contains(source, dumped) && b[0] != ' ' && b[0] != '\t' && !r.stopping && soundsWorse.In(b) == 0 && !slices.ContainsFunc(continues, func(text string) bool { return bytes.HasPrefix(b, []byte(text)) })
}

// happened are pieces of words that say that something went wrong, and not that it might, or what is done then.
var happened = logline.NewWordSet("ailed", "efused", "imed out", "xception", "rashed", "isconnected", "orrupted", "illed", "borted", "roken", "nreachable", "navailable", "xpired", "anicked")

// unknownOf reads a line of a level that [reader.unknown] passes over: a warning of trouble is kept.
func (r *reader) unknownOf(level, b []byte, at trace.Time, place int32, source string) {
	if b := b[:min(len(b), lookedAt)]; bytes.HasPrefix(level, []byte("WARN")) && happened.In(b) != 0 && r.isWhole(b, source) {
		r.complaints.Warn(errortext.Said(b, source), series.Instant{Time: at, Place: place, Line: uint32(r.line)})
	}
	r.unknown(b)
}

// continues are how lines begin that go on with a traceback, or with what PyTorch says below an error of a device, or lead to one.
var continues = []string{"For debugging consider passing ", "Compile with `TORCH_USE_", "Search for `cuda", "CUDA kernel errors might be ", "HIP kernel errors might be ", "The above exception was ", "During handling of the above ", "Traceback (most recent call last)", "+ Exception Group", "| ", "frame #", "Exception raised from ", "NoneType: None", "PC: @", "@ "}

// A toolError is what programs say on their standard error that compile, link, or start others.
type toolError struct{ begins, has string }

var toolErrors = []toolError{
	{"/usr/bin/ld: ", "cannot find "}, {"", ": fatal error: "}, {"", "): error: "}, {"ptxas fatal ", ""}, {"nvcc fatal ", ""}, {"collect2: error: ", ""}, {"ninja: error: ", ""},
	{"srun: error: ", ""}, {"slurmstepd: error: ", ""}, {"docker: Error ", ""}, {"exec ", ": no such file or directory"}, {"bash: ", ": command not found"}, {"/bin/sh: ", ": not found"},
	{"[TM][ERROR]", ""}, {"[TM][FATAL]", ""}, {"(raylet", "failed"}, {"(raylet", "marked dead"}, {"(raylet", "is unexpected"}, {"", "error while loading shared libraries: "}, {"OSError: ", "cannot open shared object file"},
	{"FATAL: ", ""}, {"Fatal error", ""}, {"fatal error: ", ""}, {"[FATAL] ", ""}, {"[ERROR] ", ""}, {"NotImplementedError: ", ""},
}

// ofTool reads such a line.
func (r *reader) ofTool(b []byte) bool {
	return slices.ContainsFunc(toolErrors, func(x toolError) bool {
		return bytes.HasPrefix(b, []byte(x.begins)) && bytes.Contains(b, []byte(x.has))
	}) && r.complain(b, r.now, r.unranked(), "tool")
}
