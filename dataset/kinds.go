package dataset

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
)

// A file is one of a table that has rows of one kind, so that a report opens those that it
// needs.
type file struct {
	name      string
	kind      string // of its rows
	of        profile.SliceKind
	operators bool // the table operators, not slices
}

// Files of events.
var (
	kernelsFile   = &file{name: "slices-kernels", kind: "kernel", of: profile.KernelSlice}
	copiesFile    = &file{name: "slices-copies", kind: "copy", of: profile.CopySlice}
	callsFile     = &file{name: "slices-calls", kind: "call", of: profile.CallSlice}
	rangesFile    = &file{name: "slices-ranges", kind: "range", of: profile.RangeSlice}
	otherFile     = &file{name: "slices-other", kind: "other"}
	operatorsFile = &file{name: "operators-operators", kind: "operator", of: profile.OperatorSlice, operators: true}
	pythonFile    = &file{name: "operators-python", kind: "python", of: profile.PythonSlice, operators: true}
	systemFile    = &file{name: "operators-system", kind: "system", of: profile.SystemSlice, operators: true}
)

// eventFiles are the files of events, in the order in which events are read.
var eventFiles = []*file{kernelsFile, copiesFile, callsFile, rangesFile, operatorsFile, pythonFile, systemFile, otherFile}

// fileOf returns the file of events of a kind.
func fileOf(kind profile.SliceKind) *file {
	return eventFiles[slices.IndexFunc(eventFiles, func(f *file) bool { return f.of == kind })]
}

// wants reports whether a filter may keep events of the file.
func (f *file) wants(filter *profile.Filter) bool {
	return filter.Cats == nil || f == otherFile || slices.ContainsFunc(f.of.Categories(), filter.KeepsCategory)
}

// words are the texts that stand in a column, by number.
type words []string

// number returns the number of a word, 0 if there is none.
func (w words) number(word []byte) int { return max(0, slices.Index(w, string(word))) }

var (
	rowKinds     = words{profile.RowThread: "thread", profile.RowStream: "stream", profile.RowAsync: "async", profile.RowCounter: "counter", profile.RowOther: "other"}
	stepKinds    = words{profile.StepOther: "other", profile.StepPrefill: "prefill", profile.StepDecode: "decode"}
	frameKinds   = words{profile.OperatorFrame: "operator", profile.PythonFrame: "python", profile.SystemFrame: "system"}
	counterKinds = words{profile.MemoryCounter: "memory", profile.DeviceCounter: "device", profile.NetworkCounter: "network"}
	rangeStyles  = words{profile.PushPop: profile.PushPop.String(), profile.StartEnd: profile.StartEnd.String()}
)

// StepKind returns the word for a kind of step.
func StepKind(k profile.StepKind) string { return stepKinds[k] }

// KernelKind returns the word for what a kernel is.
func KernelKind(k *profile.Kernel) string {
	if k.Graph {
		return graphKind
	}
	return kernelsFile.kind
}

// Words that tell rows of one kind from others of their table.
const (
	graphKind       = "graph"
	sampleKind      = "sample"
	backtraceKind   = "backtrace"
	runKind         = "run"
	traceCounter    = "trace"       // a counter of a trace
	collectivesView = "collectives" // of a process
)
