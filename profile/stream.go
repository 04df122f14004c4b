package profile

import (
	"iter"
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// A Set is what profilers recorded of some ranks, for those who need sums and not
// a timeline. Its rows are never held: each walk over a Stream reads them anew.
type Set struct {
	Syms    *trace.Symbols
	Ranks   []string // names of ranks, and of processes that are none, in the order of reports
	Streams []Stream
	// Files are what the streams are of, by stream.
	Files []string
	// Captures are recordings of the capture of CUDA graphs that Streams may replay; nil is none.
	Captures *GraphCaptures
	// Annotations are the names that programs gave the nodes of the graphs in Streams.
	Annotations []NodeAnnotations
	// Numbers are those of the ranks in their world; -1 is unknown.
	Numbers []int32
	GPUs    []string // by rank: what its accelerators are called; "" is unknown, or several
	// Collectives are those of all ranks; nil unless they were asked for.
	Collectives CollectiveMatches
	// HostCollectives are those in which hosts wait for each other, as those of gloo; nil is none, or they were not
	// asked for.
	HostCollectives CollectiveMatches
	// HostWaits are when hosts waited in those, by rank; nil is never.
	HostWaits [][]HostWait
	// MissingRanks are the jobs of which ranks are missing in the inputs; nil where ranks were
	// selected.
	MissingRanks []MissingRanks
	// Recorded is what profilers recorded of some rank besides events, which slows hosts
	// down: "shapes", "stacks".
	Recorded []string
	// Exports tells that some streams are of Nsight Systems, which has options of its own.
	Exports bool
	// Lanes are what rows of timelines without devices did, by step.
	Lanes []LaneTime
	// GraphCapture tells that some recordings are of a server that starts and captures its
	// CUDA graphs.
	GraphCapture bool
	// Placements are where each rank ran, by rank; nil is unknown.
	Placements []Placement
	// ClockOffsets are how far the clock of each rank is ahead of the reference, on which requests
	// are put, in the middle of what was recorded of it, ns; nil unless clocks were related.
	ClockOffsets []int64
}

// GraphCaptures are recordings of how CUDA graphs were captured. They have symbols of their
// own, and no time or work in them counts.
type GraphCaptures struct {
	Set
	// Sizes are for how many tokens graphs were captured, by file, where it is written beside the files.
	Sizes map[string]int64
}

// ClockOffsetOf returns [Set.ClockOffsets] of a rank, 0 where it is not known.
func (s *Set) ClockOffsetOf(rank int32) int64 {
	if rank < 0 || int(rank) >= len(s.ClockOffsets) {
		return 0
	}
	return s.ClockOffsets[rank]
}

// GPU returns what the accelerators of a rank are called, or those of all ranks if it is
// negative; "" is unknown, or several.
func (s *Set) GPU(rank int32) string {
	switch {
	case len(s.GPUs) == 0 || int(rank) >= len(s.GPUs):
		return "" // children that are no rank come behind the ranks
	case rank >= 0:
		return s.GPUs[rank]
	}
	for _, name := range s.GPUs[1:] {
		if name != s.GPUs[0] {
			return ""
		}
	}
	return s.GPUs[0]
}

// A Placement is where a rank ran, and by what.
type Placement struct {
	Host string // as reports print it; "" is unknown
	// GPU is the only accelerator that it used, as the machine counts; -1 is unknown, or there
	// are several. UUID names it everywhere; "" is unknown.
	GPU  int32
	UUID string
	// Devices is how many accelerators its process saw on the machine; 0 is unknown.
	Devices  int
	Versions []Version
}

// Within returns a stream for those who look at a window of time alone. Events that do not overlap
// [from, to], 0 is no bound, may be missing, if the stream can leave them out without reading
// them; but no calls that launched what does.
func Within(s Stream, from, to trace.Time) Stream {
	if w, ok := s.(interface {
		Within(from, to trace.Time) Stream
	}); ok && (from != 0 || to != 0) {
		return w.Within(from, to)
	}
	return s
}

// MissingRanks tells that nothing was recorded of some ranks of a job.
type MissingRanks struct {
	Seen int // ranks
	Size int // ranks of the job
	// AtLeast tells that Size is what the numbers of ranks tell, not the size of a world.
	AtLeast bool
	// Missing names ranks and runs of them: "TP2", "rank 4 to rank 63". More counts those
	// that are missing beside, if the gaps are many.
	Missing []string
	More    int
}

// A Stream passes the rows of one input, each kind in about the order of their
// start, but in no certain one. What it passes is valid until the next row. A walk
// ends early if yield returns false. Several walks may be under way at once.
//
// A call and what it launched have the same Rank and Correlation. Correlations
// mean nothing beyond a Stream.
type Stream interface {
	Kernels(yield func(*Kernel) bool)
	Copies(yield func(*Copy) bool)
	Calls(yield func(*Call) bool)
	Ranges(yield func(*Range) bool)
	Frames(yield func(*Frame) bool)
	// Samples passes what threads ran whenever the profiler interrupted them, Runs when threads
	// had cores.
	Samples(yield func(*Sample) bool)
	// Backtraces are the stacks of calls. Of each call that has one it is asked first, before the
	// stack is read, whether it is wanted; nil is yes.
	Backtraces(wanted func(*Sample) bool) iter.Seq[*Sample]
	Runs(yield func(*Run) bool)
	// CounterValues passes what was sampled of devices, their memory, and network cards.
	CounterValues(yield func(*CounterValue) bool)
}

// An Event is what rows of all kinds have.
type Event struct {
	Start, End  trace.Time // Unix ns on the clock of the host, or since the start of the recording where that is all that is known
	Correlation int64      // joins calls to work on devices; 0 is none
	Name        trace.Sym
	Rank        int32 // index into Set.Ranks
	PID         int32 // -1 is unknown
	At          int32 // index into Profile.Events, of what a profile holds
}

// Dur returns how long the event lasted, in ns; 0 if it ends before it starts.
func (e *Event) Dur() int64 { return max(0, int64(e.End-e.Start)) }

// A Kernel is one that ran, or a whole CUDA graph whose kernels were not recorded.
type Kernel struct {
	Event
	Device int32  // as the process counts
	Stream uint32 // CUDA stream
	// OneBlock is how many threads a kernel has that was launched as a single block, so that
	// one multiprocessor of the device runs it; 0 is one of several blocks, or unknown.
	OneBlock int32
	Graph    bool // stands for a whole graph
	// Shape and Node are known where [LaunchArguments] were asked for. A node of a graph has its
	// number in each replay; 0 is no graph, or unknown.
	Shape LaunchShape
	Node  int64
}

// OneBlockOf returns [Kernel.OneBlock] of a kernel that was launched as a grid of blocks, and
// blocks of threads. Unknown sizes are 0.
func OneBlockOf(blocks, threads int64) int32 {
	if blocks != 1 || threads < 0 || threads > math.MaxInt32 {
		return 0
	}
	return int32(threads)
}

// A Copy is a copy between memories, or the filling of one. Name is what nsys stats
// calls the operation: "[CUDA memcpy Host-to-Device]", "[CUDA memset]".
type Copy struct {
	Event
	Device int32
	Stream uint32
	Bytes  int64 // -1 is unknown
	Kind   CopyKind
}

// A Call is one of a thread into the CUDA runtime or driver.
type Call struct {
	Event
	TID    int64
	Result int32 // what it returned, see [Failed]; UnknownResult if nobody recorded that
	// Kernel is what it launches, and Shape how, where [LaunchArguments] were asked for and the
	// profiler writes them with calls, as that of ROCm does; 0 is unknown.
	Kernel trace.Sym
	Shape  LaunchShape
}

// RangeStyle says which ranges nest. The text is that of nsys stats.
type RangeStyle uint8

const (
	PushPop  RangeStyle = iota // nests with others of its thread
	StartEnd                   // may overlap others and end on another thread
)

func (s RangeStyle) String() string {
	return [...]string{"PushPop", "StartEnd"}[s]
}

// A Range is an annotation: an NVTX range, or a user annotation of PyTorch's
// profiler. Name is its text, with the domain before it if it has one
// ("NCCL:ncclAllReduce").
type Range struct {
	Event
	TID   int64 // where it began
	Style RangeStyle
	// Open tells that the range was never closed: it ends with the recording, and
	// its duration means nothing.
	Open bool
}

// FrameKind says what a thread did in a frame.
type FrameKind uint8

const (
	OperatorFrame FrameKind = iota // an operator of PyTorch: "aten::item"
	PythonFrame                    // a call in Python: "threading.py(327): wait", "<built-in function len>", "nn.Module: Linear_0"
	SystemFrame                    // a call into the operating system: "pthread_mutex_lock"
	RangeFrame                     // an annotation that stands for none of these. No stream has frames of it
)

// A Frame is what a thread did, apart from its calls and ranges. Frames of a thread nest, in
// each other and in those.
type Frame struct {
	Event
	TID  int64
	Kind FrameKind
	// Shapes and Types are those of the inputs of an operator, as PyTorch's profiler writes
	// them: "[[8,4096],[4096,1024]]", "[\"c10::BFloat16\",\"c10::BFloat16\"]". 0 is not
	// recorded, or not asked for.
	Shapes, Types trace.Sym
	// Mask is known of operators that compute attention, where [ConcreteInputs] were asked for.
	Mask Mask
	// Values are those of the inputs of a convolution or a batch norm that are no tensors, in their places:
	// "[\"\",\"\",\"\",\"[16, 16]\",...]". 0 is another operator, or not recorded.
	Values trace.Sym
}

// A CounterValue is the value of a counter at a moment.
type CounterValue struct {
	Time   trace.Time // on the clock of the host, as of an [Event]
	Rank   int32      // index into Set.Ranks; -1 is the machine's, not a rank's
	Source trace.Sym  // what it is about: "GPU 0 of node1", a network card
	Name   trace.Sym  // "SMs Active", "memory allocated"
	Unit   trace.Sym  // "%", "bytes"; 0 is unknown
	Value  float64
	Kind   CounterKind
}

// CounterKind says what a counter is of.
type CounterKind uint8

const (
	MemoryCounter  CounterKind = iota // memory of a device: the value holds until the next one
	DeviceCounter                     // a metric of a device, about the time before it
	NetworkCounter                    // what a network card or switch counted in the time before it
)

// WithObserved returns a stream of the events of st, and of what was observed meanwhile,
// the nodes of graphs included.
func WithObserved(st, observed Stream) Stream { return withObserved{st, observed} }

type withObserved struct {
	Stream
	observed Stream
}

func (b withObserved) Samples(yield func(*Sample) bool) { b.observed.Samples(yield) }
func (b withObserved) Backtraces(wanted func(*Sample) bool) iter.Seq[*Sample] {
	return b.observed.Backtraces(wanted)
}
func (b withObserved) Runs(yield func(*Run) bool)             { b.observed.Runs(yield) }
func (b withObserved) GraphNodes(yield func(*GraphNode) bool) { GraphNodes(b.observed)(yield) }

// NodeRanges are those of what was observed: a timeline holds NVTX ranges as slices of no kind.
func (b withObserved) NodeRanges(yield func(*Range) bool) { b.observed.Ranges(yield) }
func (b withObserved) CounterValues(yield func(*CounterValue) bool) {
	b.observed.CounterValues(yield)
}

// Unversioned returns a stream that calls calls as PyTorch does, without the version of CUDA in
// which their signature changed: nsys stats leaves short ones out only.
func Unversioned(st Stream, syms *trace.Symbols) Stream { return unversioned{st, syms} }

type unversioned struct {
	Stream
	syms *trace.Symbols
}

func (u unversioned) Calls(yield func(*Call) bool) {
	names := trace.Renamed(u.syms, CallName)
	u.Stream.Calls(func(c *Call) bool {
		c.Name = names.Of(c.Name)
		return yield(c)
	})
}
