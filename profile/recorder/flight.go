package recorder

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// InFlight is the content of the dumps of several processes. Readers of several inputs may add to it
// concurrently.
type InFlight struct {
	Syms  *trace.Symbols
	Dumps []*FlightDump // sorted by file, once all are read

	mu sync.Mutex
}

// NewInFlight returns an empty set.
func NewInFlight(syms *trace.Symbols) *InFlight { return &InFlight{Syms: syms} }

// Unknown is an unknown number.
const Unknown = -1

// A Source is the origin of a dump.
type Source uint8

const (
	FlightRecorder Source = iota // of PyTorch
	Watchdog                     // of PyTorch's ProcessGroupNCCL, in a log
	NCCL                         // in a log, with NCCL_DEBUG=INFO: shows what was entered, but not what ended
	PySpy                        // stacks of threads, and no collectives
	Inspector                    // of NCCL: the last collectives that ended, but none in flight
)

// String returns the word used in tables.
func (r Source) String() string {
	return [...]string{"PyTorch flight recorder", "PyTorch watchdog", "NCCL log", "py-spy", "NCCL Inspector"}[r]
}

// A FlightDump is the content of one dump of a process.
type FlightDump struct {
	File string
	By   Source
	Rank int32 // in the job; or Unknown
	// Of is the rank as the process names itself, if the number in the job is missing.
	Of      trace.Rank
	Host    string // "" is unknown
	PID     int64  // 0 is unknown
	Title   string // of the process, "sglang::scheduler_TP3"; "" is unknown
	Version string // of the format; "" is unknown
	NCCL    string // version; "" is unknown
	Groups  []Group
	Ops     []Op       // in the order in which the process entered them
	Stacks  [][]Frame  // of Ops and Threads
	Threads []Thread   // of PySpy, the main one first
	Time    trace.Time // the latest time in the dump; 0 is unknown
	// Source is the input of a series.Set that determines the time zone of the times, plus one; 0 if they are Unix
	// times.
	Source int32
	// Stuck is the time in seconds for which the watchdog itself made no progress; 0 is unknown.
	Stuck int64
	// Lost means that the file ends too early.
	Lost bool
}

// A Group is a process group, from the view of one of its processes.
type Group struct {
	Name  string  // differs between ranks for the same group
	Desc  string  // "EXPERT_MODEL_PARALLEL_GROUP"; "" is unknown
	Ranks []int32 // of the job, in order; nil is unknown
	// ID is the recorder's number of the group, or Unknown. It distinguishes groups of one process.
	ID int64
	// Enqueued is the last collective that the process entered, and Completed the last one that it knows has ended;
	// Unknown, which is also PyTorch's value for none at all.
	Enqueued, Completed int64
	// Counted means that these two are in the dump, even if there are none.
	Counted bool
	// Size is its number of ranks, and Member the process's rank in it; or Unknown.
	Size, Member int32
	// Ended means that the process destroyed it in good order, and Aborted that it did not.
	Ended, Aborted bool
}

// Nameless is the group of collectives for which a log has no group name.
const Nameless = "?"

// NewGroup returns a group without further information.
func NewGroup(name, desc string) Group {
	return Group{Name: name, Desc: desc, ID: Unknown, Enqueued: Unknown, Completed: Unknown, Size: Unknown, Member: Unknown}
}

// A Thread is a thread and its stack.
type Thread struct {
	Name  string // "MainThread"; "" is unknown
	State string // "idle", "active", "active+gil"; "" is unknown
	Stack int32  // index in FlightDump.Stacks, or Unknown
}

// OpState is the progress of a collective, as known to its process.
type OpState uint8

const (
	Scheduled OpState = iota // entered
	Started                  // runs on the device, at the last look
	Completed
)

// String returns the word used in tables.
func (s OpState) String() string { return [...]string{"scheduled", "started", "completed"}[s] }

// An Op is a collective, or a send or a receive, that a process entered.
type Op struct {
	Group int32 // index in FlightDump.Groups
	// Seq numbers the collectives of the group, and P2P its sends and receives.
	Seq, P2P int64
	Record   int64     // numbers what the process entered, in all groups
	Name     trace.Sym // "all_reduce", "send", as in PyTorch or NCCL
	// Src and Dst are ranks in the group, for a send or a receive; or Unknown.
	Src, Dst  int32
	In, Out   Shape
	InT, OutT trace.Sym // element types
	State     OpState
	Created   trace.Time // time at which the process entered it, Unix ns; 0 is unknown
	Stack     int32      // index in FlightDump.Stacks, for pending and recent ops; or Unknown
	// Retired means that the recorder no longer watches it: it has ended, or was given up.
	Retired bool
}

// IsP2P reports whether o is a send or a receive.
func (o *Op) IsP2P() bool { return o.Src >= 0 }

// Pending reports whether o has not ended, as far as its process knows.
func (o *Op) Pending() bool { return o.State != Completed && !o.Retired }

// A Shape is the sizes of some tensors. Equal shapes have equal texts.
type Shape struct {
	Text     trace.Sym // "[[2048, 5120]]"
	Elements int64     // of the first tensor; Unknown
}

// A Frame is a function on a stack. The innermost comes first.
type Frame struct {
	Name, File trace.Sym
	Line       int32
}

// Add adds a dump.
func (s *InFlight) Add(d *FlightDump) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Dumps = append(s.Dumps, d)
}

// Finish sorts the dumps and converts them to Unix time, after all were read. east returns how far the clock of
// an input of a series.Set is ahead of Unix time.
func (s *InFlight) Finish(east func(source int32) trace.Time) {
	slices.SortStableFunc(s.Dumps, func(a, b *FlightDump) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.By, b.By), cmp.Compare(a.Rank, b.Rank))
	})
	for _, d := range s.Dumps {
		if d.Source == 0 {
			continue
		}
		off := east(d.Source - 1)
		d.Time = shifted(d.Time, off)
		for i := range d.Ops {
			d.Ops[i].Created = shifted(d.Ops[i].Created, off)
		}
	}
}

// shifted converts a time to another clock; an unknown one stays 0.
func shifted(t, off trace.Time) trace.Time {
	if t == 0 {
		return 0
	}
	return t - off
}

// Empty reports whether there is no information about operations in flight.
func (s *InFlight) Empty() bool {
	return s == nil || !slices.ContainsFunc(s.Dumps, func(d *FlightDump) bool { return d.By != Inspector })
}

// Shape returns the shape with these sizes, whose text is a list of lists of numbers.
func (s *InFlight) Shape(sizes [][]int64) Shape {
	var b strings.Builder
	elements := int64(Unknown)
	b.WriteByte('[')
	for i, dims := range sizes {
		if i > 0 {
			b.WriteString(", ")
		}
		n := writeDims(&b, dims)
		if i == 0 {
			elements = n
		}
	}
	b.WriteByte(']')
	return Shape{s.Syms.Intern(b.String()), elements}
}

// writeDims writes a list of numbers, and returns their product.
func writeDims(b *strings.Builder, dims []int64) int64 {
	n := int64(1)
	b.WriteByte('[')
	for i, d := range dims {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(d, 10))
		n *= d
	}
	b.WriteByte(']')
	return n
}
