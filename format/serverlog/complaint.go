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

// dumped is the source file in which vLLM prints the scheduled requests when its engine failed.
const dumped = "dump_input.py"

// complain keeps a line that its program calls an error, and reports whether it did. source is the file or module that
// wrote it, "" if unknown.
func (r *reader) complain(b []byte, at trace.Time, place int32, source string) bool {
	return r.isWhole(b, source) && r.complaints.Add(errortext.Said(b, source), series.Instant{Time: at, Place: place, Line: uint32(r.line)})
}

// isWhole reports whether a line is a message of its own, not a continuation or an end of an earlier one.
func (r *reader) isWhole(b []byte, source string) bool {
	return len(b) > 0 && !strings.Contains(source, dumped) && b[0] != ' ' && b[0] != '\t' && !r.stopping && soundsWorse.In(b) == 0 && !slices.ContainsFunc(continues, func(text string) bool { return bytes.HasPrefix(b, []byte(text)) })
}

// happened are parts of words that say that something went wrong, and not that it might, or what the remedy is.
var happened = logline.NewWordSet("ailed", "efused", "imed out", "xception", "rashed", "isconnected", "orrupted", "illed", "borted", "roken", "nreachable", "navailable", "xpired", "anicked")

// unknownOf reads a line with a level that [reader.unknown] ignores: it keeps warnings of trouble.
func (r *reader) unknownOf(level, b []byte, at trace.Time, place int32, source string) {
	if b := b[:min(len(b), lookedAt)]; bytes.HasPrefix(level, []byte("WARN")) && happened.In(b) != 0 && r.isWhole(b, source) {
		r.complaints.Warn(errortext.Said(b, source), series.Instant{Time: at, Place: place, Line: uint32(r.line)})
	}
	r.unknown(b)
}

// continues are prefixes of lines that continue a traceback, or PyTorch's text below an error of a device, or introduce
// one.
var continues = []string{"For debugging consider passing ", "Compile with `TORCH_USE_", "Search for `cuda", "CUDA kernel errors might be ", "HIP kernel errors might be ", "The above exception was ", "During handling of the above ", "Traceback (most recent call last)", "+ Exception Group", "| ", "frame #", "Exception raised from ", "NoneType: None", "PC: @", "@ "}

// A toolError is an error on the standard error of programs that compile, link, or start others.
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
