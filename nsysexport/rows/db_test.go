package rows

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// An export is a source with all of its rows.
type export struct {
	*Source
	Comms        []Comm
	Launches     []Launch
	Kernels      []Kernel
	Memcpys      []Memcpy
	Memsets      []Memset
	Syncs        []Sync
	GraphRuns    []GraphRun
	GraphNodes   []GraphNode
	API          []Call
	OS           []Call
	Libraries    []Call
	Ranges       []Range
	Scheds       []Sched
	Samples      []Sample
	Metrics      []Metric
	MemoryEvents []MemoryEvent
	Messages     []Message
}

// open reads all rows of an export.
func open(path string, opt Options) (*export, error) {
	s, err := Open(path, opt)
	if err != nil {
		return nil, err
	}
	e := &export{Source: s, API: collect(s.Within(0, 0).API), Kernels: collect(s.Within(0, 0).Kernels), Ranges: collect(s.Within(0, 0).Ranges), OS: collect(s.Within(0, 0).OS)}
	s.Samples(func(x *Sample, known []Metric) bool {
		e.Samples, e.Metrics = append(e.Samples, *x), known
		return true
	})
	e.Scheds, e.Memcpys, e.Memsets, e.Syncs = collect(s.Scheds), collect(s.Within(0, 0).Memcpys), collect(s.Within(0, 0).Memsets), collect(s.Syncs)
	e.GraphRuns, e.GraphNodes, e.Libraries = collect(s.Within(0, 0).GraphRuns), collect(s.GraphNodes), collect(s.Libraries)
	e.MemoryEvents, e.Messages = collect(s.MemoryEvents), collect(s.Messages)
	e.Launches, e.Comms = s.Launches(), s.Comms()
	return e, s.Close()
}

func collect[T any](all func(func(*T) bool)) (rows []T) {
	for row := range all {
		rows = append(rows, *row)
	}
	return rows
}

// read reads an export that must be readable.
func read(t testing.TB, path string) (*export, *dictionary, []trace.Diag) {
	t.Helper()
	opt := Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}}
	e, err := open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return e, &dictionary{opt.Syms, opt.Args}, opt.Diags.All()
}

// dictionary resolves the symbols and arguments of an export.
type dictionary struct {
	*trace.Symbols
	args *trace.Args
}
