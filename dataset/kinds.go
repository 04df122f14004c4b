package dataset

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// A file is one of a table that has rows of one kind, so that a report opens those that it
// needs.
type file struct {
	name       string
	kind       string   // of its rows
	categories []string // of the events of traces in it; nil is all that have no file
	operators  bool     // the table operators, not slices
}

// Files of events.
var (
	kernelsFile   = &file{name: "slices-kernels", kind: "kernel", categories: []string{profile.KernelCategory}}
	copiesFile    = &file{name: "slices-copies", kind: "copy", categories: profile.CopyCategories}
	callsFile     = &file{name: "slices-calls", kind: "call", categories: profile.CallCategories}
	rangesFile    = &file{name: "slices-ranges", kind: "range", categories: []string{profile.AnnotationCategory}}
	otherFile     = &file{name: "slices-other", kind: "other"}
	operatorsFile = &file{name: "operators-operators", kind: "operator", categories: []string{profile.OperatorCategory}, operators: true}
	pythonFile    = &file{name: "operators-python", kind: "python", categories: []string{profile.PythonCategory}, operators: true}
	systemFile    = &file{name: "operators-system", kind: "system", categories: []string{profile.SystemCategory}, operators: true}
)

// eventFiles are the files of events, in the order in which events are read.
var eventFiles = []*file{kernelsFile, copiesFile, callsFile, rangesFile, operatorsFile, pythonFile, systemFile, otherFile}

// fileOf returns the file of events of a category.
func fileOf(category string) *file {
	for _, f := range eventFiles {
		if slices.Contains(f.categories, category) {
			return f
		}
	}
	return otherFile
}

// wants reports whether a filter may keep events of the file.
func (f *file) wants(filter *profile.Filter) bool {
	return filter.Cats == nil || f.categories == nil || slices.ContainsFunc(f.categories, func(c string) bool { return keepsCategory(filter, c) })
}

// keepsCategory reports whether a filter keeps events of a category.
func keepsCategory(filter *profile.Filter, category string) bool {
	return filter.Cats == nil || slices.ContainsFunc(filter.Cats, func(c string) bool { return strings.EqualFold(c, category) })
}

// Words are what texts in columns stand for, by number.
type words []string

// of returns the number of a word, 0 if there is none.
func (w words) of(word []byte) int { return max(0, slices.Index(w, string(word))) }

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
