package nsysexport

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// An Export is everything of a file that this package reads. Tables have the
// order of the file, which is nearly that of their start.
type Export struct {
	Name      string
	Meta      Meta
	Processes []Process // by pid
	Threads   []Thread  // by pid and tid
	Streams   []Stream
	Ranks     []Rank // of MPI
	Comms     []Comm // of NCCL, by id and rank

	Kernels      []Kernel
	Launches     []Launch // of kernels; the first one is unknown
	Memcpys      []Memcpy
	Memsets      []Memset
	Syncs        []Sync
	GraphRuns    []GraphRun
	GraphNodes   []GraphNode
	API          []Call // CUDA runtime and driver
	OS           []Call
	Libraries    []Call // cuDNN, cuBLAS, MPI, the profiler's overhead
	Ranges       []Range
	Scheds       []Sched
	Samples      []Sample
	Metrics      []Metric // of samples
	MemoryEvents []MemoryEvent
	Messages     []Message

	Unread []Table // tables of the file that are not read
}

// Kinds is a set of tables of an [Export].
type Kinds uint32

const (
	KindKernels Kinds = 1 << iota
	KindMemory        // Memcpys, Memsets
	KindSyncs
	KindGraphs // GraphRuns, GraphNodes
	KindAPI
	KindOS
	KindLibraries
	KindRanges
	KindScheds
	KindSamples
	KindMemoryEvents
	KindMessages
)

// Read reads an export. It returns an error if nothing of it could be read; what
// is damaged or missing otherwise is told by diagnostics.
func Read(path string, opt Options) (*Export, error) {
	s, err := Open(path, opt)
	if err != nil {
		return nil, err
	}
	e := s.ReadAll()
	return e, s.Close()
}

// ReadAll reads the tables that [Options.Only] names, several at once.
func (s *Source) ReadAll() *Export {
	e := &Export{Name: s.Name, Meta: s.Meta, Processes: s.Processes, Threads: s.Threads, Streams: s.Streams,
		Ranks: s.Ranks, Unread: s.Unread}
	// The largest tables come first, so that the last worker is not alone for long.
	tasks := []struct {
		kind Kinds
		read func()
	}{
		{KindAPI, func() { e.API = collect(s, &apiTable, s.API) }},
		{KindKernels, func() { e.Kernels = collect(s, &kernelTable, s.Kernels) }},
		{KindRanges, func() { e.Ranges = collect(s, &nvtxTable, s.Ranges) }},
		{KindOS, func() { e.OS = collect(s, &osTable, s.OS) }},
		{KindSamples, func() { e.Samples, e.Metrics = s.samples() }},
		{KindScheds, func() { e.Scheds = collect(s, &schedTable, s.Scheds) }},
		{KindMemory, func() { e.Memcpys = collect(s, &memcpyTable, s.Memcpys) }},
		{KindMemory, func() { e.Memsets = collect(s, &memsetTable, s.Memsets) }},
		{KindSyncs, func() { e.Syncs = collect(s, &syncTable, s.Syncs) }},
		{KindGraphs, func() { e.GraphRuns = collect(s, &graphTable, s.GraphRuns) }},
		{KindGraphs, func() { e.GraphNodes = collect(s, &nodeTable, s.GraphNodes) }},
		{KindLibraries, func() { e.Libraries = collect(s, nil, s.Libraries) }},
		{KindMemoryEvents, func() { e.MemoryEvents = collect(s, &memoryTable, s.MemoryEvents) }},
		{KindMessages, func() { e.Messages = collect(s, &messageTable, s.Messages) }},
	}
	workers := s.opt.Workers
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), 4)
	}
	next := make(chan func(), len(tasks))
	for _, t := range tasks {
		if s.opt.Only == 0 || s.opt.Only&t.kind != 0 {
			next <- t.read
		}
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for read := range next {
				read()
			}
		})
	}
	wg.Wait()
	e.Launches, e.Comms = s.Launches(), s.Comms()
	if s.opt.Only == 0 || s.opt.Only&KindRanges != 0 {
		e.Threads = mergeThreads(e.Threads, s.NamedThreads())
	}
	return e
}

// mergeThreads adds threads that named themselves to those that nsys saw named.
// The latter win: they are what other tools show.
func mergeThreads(threads, more []Thread) []Thread {
	compare := func(a, b Thread) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID)) }
	all := slices.Concat(threads, more)
	slices.SortStableFunc(all, compare)
	return slices.CompactFunc(all, func(a, b Thread) bool { return compare(a, b) == 0 })
}

// collect returns the rows that all yields, most of which are those of spec. How
// many there are is known before, so that millions of them need not be copied
// from slice to slice as it grows, with twice the memory.
func collect[T any](s *Source, spec *tableSpec, all func(func(*T) bool)) []T {
	var list []T
	if spec != nil {
		var row T
		if n := s.count(spec); n < math.MaxInt/4/int64(unsafe.Sizeof(row)) {
			list = make([]T, 0, n)
		}
	}
	all(func(row *T) bool {
		list = append(list, *row)
		return true
	})
	return list
}

// count returns how many rows a table has, or less if that is not credible.
func (s *Source) count(spec *tableSpec) int64 {
	// Rows of all these tables take more than this in the file.
	const rowSize = 20
	c, err := s.connect()
	if err != nil {
		return 0
	}
	defer s.release(c)
	for _, name := range spec.names {
		if table := s.schema.find(name); table != "" {
			return max(min(rows(c, table), s.header.size/rowSize), 0)
		}
	}
	return 0
}

func (s *Source) samples() ([]Sample, []Metric) {
	var metrics []Metric
	samples := collect(s, &gpuMetrics, func(yield func(*Sample) bool) {
		s.Samples(func(x *Sample, known []Metric) bool {
			metrics = known
			return yield(x)
		})
	})
	return samples, metrics
}
