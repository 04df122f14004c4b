package inputs

import (
	"bytes"
	"errors"
	"slices"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/perfetto"
)

// foreign lists files that users give by mistake, recognized by how they begin or by what only such files
// contain, with what they are and what to do instead. Files that any folder may have beside captures are
// common: in a folder, they are left out without an individual message.
var foreign = []struct {
	is           func(head []byte) bool
	what, advice string
	common       bool
}{
	{begins("\xff\xfe"), "UTF-16 file", "is UTF-16 text, as PowerShell writes it: convert it with iconv -f UTF-16 -t UTF-8", false},
	{begins("\xfe\xff"), "UTF-16 file", "is UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8", false},
	{begins("PK\x03\x04"), "zip archive", "is a zip archive that cannot be unpacked here: unzip it and give the files", false},
	{begins("\xfd7zXZ\x00"), "xz file", "is compressed with xz: run unxz -k on it and give the result", false},
	{begins("BZh"), "bzip2 file", "is compressed with bzip2: run bunzip2 -k on it and give the result", false},
	{begins("\x04\x22\x4d\x18"), "lz4 file", "is compressed with lz4: run unlz4 -k on it and give the result", false},
	{begins("PERFILE2"), "recording of perf", "is a recording of Linux perf, which sgtrace does not read: perf report shows it", false},
	{begins("FLR\x00"), "recording of Java", "is a JDK Flight Recorder file, which sgtrace does not read: jfr or JDK Mission Control shows it", false},
	{begins("\x0a\x04\x08\x01\x10\x02"), "profile of pprof", "is a profile of pprof, which sgtrace does not read: go tool pprof shows it", false},
	{begins("{\xa9\x03"), "profile of cProfile", "is a profile of Python's cProfile, which sgtrace does not read: python -m pstats shows it", false},
	{begins("QDSTRM"), "recording of Nsight Systems", "is a raw recording of Nsight Systems: import it, and export the report with nsys export --type sqlite", false},
	{func(head []byte) bool { return len(head) > 257 && begins("ustar")(head[257:]) }, "tar archive", "is a tar archive that cannot be unpacked here: unpack it and give the files", false},
	{contains("speedscope.app/file-format-schema"), "speedscope profile", "is a speedscope profile, as py-spy writes, which sgtrace does not read: speedscope.app shows it", false},
	{contains(`"preprocessedProfileVersion"`), "profile of Firefox", "is a profile of Firefox or samply, which sgtrace does not read: profiler.firefox.com shows it", false},
	{contains(`"callFrame":{`), "CPU profile of V8", "is a CPU profile of V8, which sgtrace does not read: Chrome's developer tools show it", false},
	{contains("= Serving Benchmark Result ="), "summary of a benchmark", "is the summary that bench_serving prints, which has no requests: give the file of --output-file (vLLM: --save-result), with --output-details (--save-detailed) for each request", false},
	{begins("Dispatch_ID,GPU_ID,", "Dispatch_ID,Kernel_Name,"), "table of counters", "is a table of counters of rocprof-compute, which has no times: record with rocprofv3 --kernel-trace --hip-trace", false},
	{memoryTimeline.Match, "memory timeline", "is a memory timeline of PyTorch's profiler, which has no allocations: call torch.cuda.memory._record_memory_history() before, and give what torch.cuda.memory._dump_snapshot() writes", false},
	{executionTrace.Match, "execution trace", "is an execution trace of PyTorch (for Chakra or replays), which has no times: record with torch.profiler and give the trace that it exports", false},
	{begins(`"Index","KernelName"`), "table of rocprof", "is a table of rocprof as CSV, which sgtrace does not read: record with rocprofv3 --output-format rocpd, or with RPD", false},
	{begins(`"Name","Calls","TotalDurationNs"`), "table of totals", "is a table of totals of rocprof or rocprofv3, which has no times: give the trace beside it (*_kernel_trace.csv), or record with rocprofv3 --kernel-trace", false},
	{begins("Time (%),Total Time (ns),", "Start (ns),Duration (ns),"), "table of nsys stats", "is a table that nsys stats makes of an export: give the .sqlite that it was made from", false},
	{contains("==NVPROF== "), "output of nvprof", "is what nvprof prints, which sgtrace does not read: record with nsys profile", false},
	{begins("\x89PNG\r\n", "\xff\xd8\xff", "GIF8", "<svg"), "picture", "is a picture", true},
	{begins("%PDF-"), "document", "is a PDF document", true},
	{begins("\x7fELF"), "program", "is a program", true},
	{begins("PAR1"), "Parquet file", "is one table of a folder of Parquet files: if 'nsys export --type parquetdir' or 'sgtrace extract' wrote it, give the folder", true},
	{begins("\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"), "pickle", "is a pickle of Python, and neither a memory snapshot nor a flight recorder of PyTorch: sgtrace reads no others", true},
	{collapsed.Match, "collapsed stacks", "is a list of collapsed stacks, as py-spy and flamegraph.pl write, which sgtrace does not read: speedscope.app shows it", false},
	{xplane.Match, "XPlane of JAX", "is an XPlane of JAX, TensorFlow, or PyTorch/XLA, which sgtrace does not read: give the .trace.json.gz beside it, or record with create_perfetto_trace=True", false},
	{perfetto.Sniff, "Perfetto trace", "looks like a Perfetto trace, which 'sgtrace open' can show but no command can read: give the files that it was made from", false},
}

// begins matches files that begin with one of magic; contains matches files that contain text.
func begins(magic ...string) func(head []byte) bool {
	return func(head []byte) bool {
		return slices.ContainsFunc(magic, func(m string) bool { return bytes.HasPrefix(head, []byte(m)) })
	}
}

func contains(text string) func(head []byte) bool {
	return func(head []byte) bool { return bytes.Contains(head, []byte(text)) }
}

// source matches the beginning of source code, scripts, and text pages. They may quote a dump.
var source = lazyregexp.New(`^\x{feff}?\s*(package \w+|import \w|from \w+ import|//|/\*|#!|#include|# |## |"""|use \w+::|<!DOCTYPE|<html)`)

// errSource is returned for source files, even if a part looks like a dump.
var errSource = foreignError{what: "source file", advice: "is source code or text, and no dump, whatever it quotes: give the dump as a file of its own", common: true}

// damagedReport is returned for a file with the name of an Nsight Systems report, but not its content.
var damagedReport = foreignError{what: "damaged report of Nsight Systems", advice: "has the name of a report of Nsight Systems, but does not begin as one: copy it again, or record anew"}

// collapsed matches the beginning of collapsed stacks: frames separated by semicolons, and a count.
var collapsed = lazyregexp.New(`^[^\n{};]+(;[^\n;]+)+ \d+\r?\n`)

// memoryTimeline matches the beginning of export_memory_timeline's output: either changes, each with a time, a
// kind, bytes, and a category, or times, the first of which are -1.
var memoryTimeline = lazyregexp.New(`^\[(\[-?\d+, [1-4], -?\d+, \d\], ){2}|^\[\[(-1, )*(\d{13,19}, ){3}`)

// executionTrace matches the beginning of PyTorch's execution traces.
var executionTrace = lazyregexp.New(`^\s*\{\s*"schema"\s*:\s*"[\d.]+(-chakra[^"]*)?"\s*,\s*"pid"\s*:`)

// xplane matches the beginning of XLA recordings: a message whose first member is a plane, with an optional
// number and then the name.
var xplane = lazyregexp.New(`^(?s:\x0a[^/#T]{1,24}\x12.)(?:/host:|/device:|#Chip|Task Environment)`)

// A foreignError says what an input is, and what to do about it. It matches errUnknownFormat.
type foreignError struct {
	what, advice string
	common       bool // left out of folders without a message
}

func (e foreignError) Error() string { return "this " + e.advice }

func (e foreignError) Is(target error) bool { return target == errUnknownFormat }

// unknownFormat returns the error for an input that has none of Formats.
func unknownFormat(head []byte) error {
	for _, f := range foreign {
		if f.is(head) {
			return foreignError{f.what, f.advice, f.common}
		}
	}
	return errUnknownFormat
}

var (
	errUnknownFormat = errors.New("not a format that sgtrace reads; 'sgtrace help inspect' lists them")
	errZeros         = errors.New("this begins with zeros: the program that wrote it was interrupted or is still writing; copy the file again")
)
