package profile

import (
	"iter"
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// A Set is what profilers recorded of some ranks, for code that needs sums and not a timeline. Its rows are
// never held: each walk over a Stream reads them anew.
type Set struct {
	Syms    *trace.Symbols
	Ranks   []string // names of ranks, and of processes that are not ranks, in the order of reports
	Streams []Stream
	// Files are the inputs of the streams, by stream.
	Files []string
	// Captures are recordings of the capture of CUDA graphs that Streams may replay; nil if there are none.
	Captures *GraphCaptures
	// Annotations are the names that programs gave to the nodes of the graphs in Streams.
	Annotations []NodeAnnotations
	// Numbers are the numbers of the ranks in their world; -1 is unknown.
	Numbers []int32
	GPUs    []string // names of the accelerators by rank; "" is unknown, or several
	// Collectives are the collectives of all ranks; nil unless requested.
	Collectives CollectiveMatches
	// HostCollectives are those in which hosts wait for each other, such as gloo's; nil if there are none, or they
	// were not requested.
	HostCollectives CollectiveMatches
	// HostWaits are the times during which hosts waited in those, by rank; nil if there are none.
	HostWaits [][]HostWait
	// MissingRanks are the jobs with ranks that are missing in the inputs; nil if ranks were selected.
	MissingRanks []MissingRanks
	// Recorded are the optional recordings of some rank's profiler, which slow hosts down: "shapes", "stacks".
	Recorded []string
	// Exports means that some streams are from Nsight Systems, which has options of its own.
	Exports bool
	// Lanes are the activities of rows of timelines without devices, by step.
	Lanes []LaneTime
	// GraphCapture means that some recordings are of a server that is starting and capturing its CUDA graphs.
	GraphCapture bool
	// Placements are the places of the ranks, by rank; nil is unknown.
	Placements []Placement
	// ClockOffsets are how far the clock of each rank is ahead of the reference clock, to which requests are
	// converted, in the middle of the rank's recording, in ns; nil unless clocks were related.
	ClockOffsets []int64
}

// GraphCaptures are recordings of the capture of CUDA graphs. They have symbols of their own, and their times
// and work do not count.
type GraphCaptures struct {
	Set
	// Sizes are the numbers of tokens for which graphs were captured, by file, if they are written next to the
	// files.
	Sizes map[string]int64
}

// ClockOffsetOf returns the entry of a rank in [Set.ClockOffsets], 0 if it is unknown.
func (s *Set) ClockOffsetOf(rank int32) int64 {
	if rank < 0 || int(rank) >= len(s.ClockOffsets) {
		return 0
	}
	return s.ClockOffsets[rank]
}

// GPU returns the name of the accelerators of a rank, or of all ranks if rank is negative; "" is unknown, or
// several.
func (s *Set) GPU(rank int32) string {
	switch {
	case len(s.GPUs) == 0 || int(rank) >= len(s.GPUs):
		return "" // processes that are not ranks follow the ranks
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

// A Placement is where a rank ran, and on what.
type Placement struct {
	Host string // as printed in reports; "" is unknown
	// GPU is the only accelerator that it used, in the machine's numbering; -1 is unknown, or there are several.
	// UUID names it globally; "" is unknown.
	GPU  int32
	UUID string
	// Devices is the number of accelerators that its process saw on the machine; 0 is unknown.
	Devices  int
	Versions []Version
}

// Within returns a stream for a window of time. It may omit events that do not overlap [from, to], where 0 is
// no bound, if the stream can do that without reading them; but no calls that launched overlapping work.
func Within(s Stream, from, to trace.Time) Stream {
	if w, ok := s.(interface {
		Within(from, to trace.Time) Stream
	}); ok && (from != 0 || to != 0) {
		return w.Within(from, to)
	}
	return s
}

// MissingRanks means that there is no recording of some ranks of a job.
type MissingRanks struct {
	Seen int // number of ranks
	Size int // number of ranks in the job
	// AtLeast means that Size is a lower bound from the numbers of ranks, and not the size of a world.
	AtLeast bool
	// Missing names missing ranks and ranges of them: "TP2", "rank 4 to rank 63". More is the number of further
	// missing ranks, if there are many gaps.
	Missing []string
	More    int
}

// A Stream passes the rows of one input, each kind roughly in the order of their start, without a guarantee. A
// row is valid until the next one. A walk ends early if yield returns false. Several walks may be in progress
// at once.
//
// A call and the work that it launched have the same Rank and Correlation. Correlations are only meaningful
// within a Stream.
type Stream interface {
	Kernels(yield func(*Kernel) bool)
	Copies(yield func(*Copy) bool)
	Calls(yield func(*Call) bool)
	Ranges(yield func(*Range) bool)
	Frames(yield func(*Frame) bool)
	// Samples passes the stacks of threads at the profiler's interrupts, Runs the times during which threads had
	// cores.
	Samples(yield func(*Sample) bool)
	// Backtraces yields the stacks of calls. Before it reads the stack of a call, it asks whether the call is
	// wanted; nil means always.
	Backtraces(wanted func(*Sample) bool) iter.Seq[*Sample]
	Runs(yield func(*Run) bool)
	// CounterValues passes the samples of devices, their memory, and network cards.
	CounterValues(yield func(*CounterValue) bool)
}

// An Event is the common part of all kinds of rows.
type Event struct {
	Start, End  trace.Time // Unix ns on the clock of the host, or since the start of the recording if that is unknown
	Correlation int64      // joins calls to work on devices; 0 is none
	Name        trace.Sym
	Rank        int32 // index in Set.Ranks
	PID         int32 // -1 is unknown
	At          int32 // index in Profile.Events, if a profile holds the event
}

// Dur returns the duration of the event in ns; 0 if it ends before it starts.
func (e *Event) Dur() int64 { return max(0, int64(e.End-e.Start)) }

// A Kernel is the run of a kernel, or of a whole CUDA graph whose kernels were not recorded.
type Kernel struct {
	Event
	Device int32  // in the process's numbering
	Stream uint32 // CUDA stream
	Grid   Grid
	Graph  bool // stands for a whole graph
	// Shape and Node are known if [LaunchArguments] were requested. A node of a graph has its number in each
	// replay; 0 is no graph, or unknown.
	Shape LaunchShape
	Node  int64
}

// A Grid is the size of a launch: the number of its blocks, of which most kernels get more if they have more to do. If there
// is one, it is minus the number of its threads; 0 is unknown.
type Grid int32

// GridOf returns the grid of a launch with a number of blocks, and of threads per block. Unknown sizes are 0.
func GridOf(blocks, threads int64) Grid {
	if blocks == 1 && threads > 0 && threads <= math.MaxInt32 {
		return Grid(-threads)
	}
	return Grid(min(max(0, blocks), math.MaxInt32))
}

// Blocks returns the number of blocks; 0 is unknown.
func (g Grid) Blocks() int32 {
	if g < 0 {
		return 1
	}
	return int32(g)
}

// OneBlock returns the number of threads of a kernel that was launched as a single block, so that one multiprocessor
// of the device runs it; 0 if there are several blocks, or if that is unknown.
func (g Grid) OneBlock() int32 { return int32(max(0, -g)) }

// A Copy is a copy between memories, or a memory fill. Name is the name of the operation in nsys stats: "[CUDA
// memcpy Host-to-Device]", "[CUDA memset]".
type Copy struct {
	Event
	Device int32
	Stream uint32
	Bytes  int64 // -1 is unknown
	Kind   CopyKind
}

// A Call is a call of a thread into the CUDA runtime or driver.
type Call struct {
	Event
	TID    int64
	Result int32 // return value, see [Failed]; UnknownResult if it was not recorded
	// Kernel is the launched kernel, and Shape its launch, if [LaunchArguments] were requested and the profiler
	// records them with calls, as ROCm's does; 0 is unknown.
	Kernel trace.Sym
	Shape  LaunchShape
}

// RangeStyle is how ranges nest. The text is that of nsys stats.
type RangeStyle uint8

const (
	PushPop  RangeStyle = iota // nests with other ranges of its thread
	StartEnd                   // may overlap others and end on another thread
)

func (s RangeStyle) String() string {
	return [...]string{"PushPop", "StartEnd"}[s]
}

// A Range is an annotation: an NVTX range, or a user annotation of PyTorch's profiler. Name is its text, with
// the domain in front if it has one ("NCCL:ncclAllReduce").
type Range struct {
	Event
	TID   int64 // of its beginning
	Style RangeStyle
	// Open means that the range was never closed: it ends with the recording, and its duration is meaningless.
	Open bool
}

// FrameKind is the kind of activity in a frame.
type FrameKind uint8

const (
	OperatorFrame FrameKind = iota // an operator of PyTorch: "aten::item"
	PythonFrame                    // a call in Python: "threading.py(327): wait", "<built-in function len>", "nn.Module: Linear_0"
	SystemFrame                    // a call into the operating system: "pthread_mutex_lock"
	RangeFrame                     // any other annotation; no stream has such frames
)

// A Frame is an activity of a thread other than a call or a range. Frames of a thread nest, in each other and
// in calls and ranges.
type Frame struct {
	Event
	TID  int64
	Kind FrameKind
	// Shapes and Types are those of the inputs of an operator, as PyTorch's profiler writes them:
	// "[[8,4096],[4096,1024]]", "[\"c10::BFloat16\",\"c10::BFloat16\"]". 0 is not recorded, or not requested.
	Shapes, Types trace.Sym
	// Mask is known for operators that compute attention, if [ConcreteInputs] were requested.
	Mask Mask
	// Values are the inputs of a convolution or a batch norm that are not tensors, in their places:
	// "[\"\",\"\",\"\",\"[16, 16]\",...]". 0 is another operator, or not recorded.
	Values trace.Sym
}

// A CounterValue is the value of a counter at a moment.
type CounterValue struct {
	Time   trace.Time // on the clock of the host, as in an [Event]
	Rank   int32      // index in Set.Ranks; -1 belongs to the machine
	Source trace.Sym  // the measured thing: "GPU 0 of node1", a network card
	Name   trace.Sym  // "SMs Active", "memory allocated"
	Unit   trace.Sym  // "%", "bytes"; 0 is unknown
	Value  float64
	Kind   CounterKind
}

// CounterKind is the kind of thing that a counter measures.
type CounterKind uint8

const (
	MemoryCounter  CounterKind = iota // memory of a device: the value holds until the next one
	DeviceCounter                     // a metric of a device, over the time before the value
	NetworkCounter                    // the count of a network card or switch in the time before the value
)

// WithObserved returns a stream with the events of st, and the observations of observed: samples, counters, and
// the nodes of graphs.
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

// NodeRanges are those of observed: a timeline holds NVTX ranges as slices without a kind.
func (b withObserved) NodeRanges(yield func(*Range) bool) { b.observed.Ranges(yield) }
func (b withObserved) CounterValues(yield func(*CounterValue) bool) {
	b.observed.CounterValues(yield)
}

// Unversioned returns a stream with the names of calls that PyTorch uses, without the version of CUDA in which
// their signature changed: nsys stats only drops short ones.
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
