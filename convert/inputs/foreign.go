package inputs

import (
	"bytes"
	"errors"
	"regexp"
	"slices"

	"github.com/sgtrace/sgtrace/perfetto"
)

// foreign lists what is given in the place of an input, by the magic that it has, with
// what it is and what to do about it.
var foreign = []struct {
	at           int
	magic        string
	what, advice string
}{
	{0, "\xff\xfe", "UTF-16 file", "is UTF-16 text, as PowerShell writes it: convert it with iconv -f UTF-16 -t UTF-8"},
	{0, "\xfe\xff", "UTF-16 file", "is UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"},
	{0, "PK\x03\x04", "zip archive", "is a zip archive that cannot be unpacked here: unzip it and give the files"},
	{0, "\xfd7zXZ\x00", "xz file", "is compressed with xz: run unxz -k on it and give the result"},
	{0, "BZh", "bzip2 file", "is compressed with bzip2: run bunzip2 -k on it and give the result"},
	{0, "\x04\x22\x4d\x18", "lz4 file", "is compressed with lz4: run unlz4 -k on it and give the result"},
	{0, "PERFILE2", "recording of perf", "is a recording of Linux perf, which sgtrace does not read: perf report shows it"},
	{0, "FLR\x00", "recording of Java", "is a JDK Flight Recorder file, which sgtrace does not read: jfr or JDK Mission Control shows it"},
	{0, "\x0a\x04\x08\x01\x10\x02", "profile of pprof", "is a profile of pprof, which sgtrace does not read: go tool pprof shows it"},
	{0, "{\xa9\x03", "profile of cProfile", "is a profile of Python's cProfile, which sgtrace does not read: python -m pstats shows it"},
	{0, "QDSTRM", "recording of Nsight Systems", "is a raw recording of Nsight Systems: import it, and export the report with nsys export --type sqlite"},
	{257, "ustar", "tar archive", "is a tar archive that cannot be unpacked here: unpack it and give the files"},
}

// common is the same for what any folder may have beside captures: it is left out of a folder
// without a word on each.
var common = []struct {
	begins   []string
	what, is string
}{
	{[]string{"\x89PNG\r\n", "\xff\xd8\xff", "GIF8", "<svg"}, "picture", "is a picture"},
	{[]string{"%PDF-"}, "document", "is a PDF document"},
	{[]string{"\x7fELF"}, "program", "is a program"},
	{[]string{"PAR1"}, "Parquet file", "is one table of a folder of Parquet files: if 'nsys export --type parquetdir' or 'sgtrace extract' wrote it, give the folder"},
	{[]string{"\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"}, "pickle", "is a pickle of Python, and neither a memory snapshot nor a flight recorder of PyTorch: sgtrace reads no others"},
}

// source is how source code, scripts, and pages of text begin. They may quote a dump.
var source = regexp.MustCompile(`^\x{feff}?\s*(package \w+|import \w|from \w+ import|//|/\*|#!|#include|# |## |"""|use \w+::|<!DOCTYPE|<html)`)

// errSource is about files of which a part may look like a dump.
var errSource = foreignError{what: "source file", advice: "is source code or text, and no dump, whatever it quotes: give the dump as a file of its own", common: true}

// damagedReport is about a file that has the name of a report of Nsight Systems and not its content.
var damagedReport = foreignError{what: "damaged report of Nsight Systems", advice: "has the name of a report of Nsight Systems, but does not begin as one: copy it again, or record anew"}

// foreignTexts is the same for text, by what only such files contain.
var foreignTexts = []struct{ text, what, advice string }{
	{"speedscope.app/file-format-schema", "speedscope profile", "is a speedscope profile, as py-spy writes, which sgtrace does not read: speedscope.app shows it"},
	{`"preprocessedProfileVersion"`, "profile of Firefox", "is a profile of Firefox or samply, which sgtrace does not read: profiler.firefox.com shows it"},
	{`"callFrame":{`, "CPU profile of V8", "is a CPU profile of V8, which sgtrace does not read: Chrome's developer tools show it"},
	{"= Serving Benchmark Result =", "summary of a benchmark", "is the summary that bench_serving prints, which has no requests: give the file of --output-file (vLLM: --save-result), with --output-details (--save-detailed) for each request"},
	{"==NVPROF== ", "output of nvprof", "is what nvprof prints, which sgtrace does not read: record with nsys profile"},
}

// collapsed is how a list of collapsed stacks begins: frames between semicolons, and a count.
var collapsed = regexp.MustCompile(`^[^\n{};]+(;[^\n;]+)+ \d+\r?\n`)

// xplane is how recordings of XLA begin: a message whose first member is a plane, of which the number
// may come first, and then the name.
var xplane = regexp.MustCompile(`^(?s:\x0a[^/#T]{1,24}\x12.)(?:/host:|/device:|#Chip|Task Environment)`)

// A foreignError says what an input is, and what to do about it. It is an
// errUnknownFormat.
type foreignError struct {
	what, advice string
	common       bool // in folders
}

func (e foreignError) Error() string { return e.advice }

func (e foreignError) Is(target error) bool { return target == errUnknownFormat }

// unknownFormat says what an input is that has none of Formats.
func unknownFormat(head []byte) error {
	for _, f := range foreign {
		if len(head) > f.at && bytes.HasPrefix(head[f.at:], []byte(f.magic)) {
			return foreignError{what: f.what, advice: f.advice}
		}
	}
	for _, f := range foreignTexts {
		if bytes.Contains(head, []byte(f.text)) {
			return foreignError{what: f.what, advice: f.advice}
		}
	}
	for _, f := range common {
		if slices.ContainsFunc(f.begins, func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }) {
			return foreignError{what: f.what, advice: f.is, common: true}
		}
	}
	if collapsed.Match(head) {
		return foreignError{what: "collapsed stacks", advice: "is a list of collapsed stacks, as py-spy and flamegraph.pl write, which sgtrace does not read: speedscope.app shows it"}
	}
	if xplane.Match(head) {
		return foreignError{what: "XPlane of JAX", advice: "is an XPlane of JAX, TensorFlow, or PyTorch/XLA, which sgtrace does not read: give the .trace.json.gz beside it, or record with create_perfetto_trace=True"}
	}
	if perfetto.Sniff(head) {
		return errPerfetto
	}
	return errUnknownFormat
}

var (
	errUnknownFormat = errors.New("not a format that sgtrace reads; 'sgtrace help inspect' lists them")
	errPerfetto      = foreignError{what: "Perfetto trace", advice: "looks like a Perfetto trace, which 'sgtrace open' can show but no command can read: give the files that it was made from"}
	errZeros         = errors.New("begins with zeros: the program that wrote it was interrupted or is still writing; copy the file again")
)
