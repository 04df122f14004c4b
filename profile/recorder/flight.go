package recorder

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// InFlight is what several processes say. Readers of several inputs may add to it at once.
type InFlight struct {
	Syms  *trace.Symbols
	Dumps []*FlightDump // by the names of their files, once all are read

	mu sync.Mutex
}

// NewInFlight returns an empty set.
func NewInFlight(syms *trace.Symbols) *InFlight { return &InFlight{Syms: syms} }

// Unknown is a number that nobody tells.
const Unknown = -1

// A Source is who says what a dump holds.
type Source uint8

const (
	FlightRecorder Source = iota // of PyTorch
	Watchdog                     // of PyTorch's ProcessGroupNCCL, in a log
	NCCL                         // in a log, with NCCL_DEBUG=INFO: what was entered, and never what ended
	PySpy                        // stacks of threads, and no collectives
	Inspector                    // of NCCL: the last that ended, and never what is in flight
)

// String returns the word of a table.
func (r Source) String() string {
	return [...]string{"PyTorch flight recorder", "PyTorch watchdog", "NCCL log", "py-spy", "NCCL Inspector"}[r]
}

// A FlightDump is what one process says.
type FlightDump struct {
	File string
	By   Source
	Rank int32 // in the job; Unknown
	// Of is which rank the process calls itself, where the number of the job is not told.
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
	Time    trace.Time // the latest that it tells of; 0 is unknown
	// Source is which input of a series.Set decides the zone of its times, plus one; 0 is none: they
	// are Unix times.
	Source int32
	// Stuck are seconds for which the watchdog itself came to nothing; 0 is not told.
	Stuck int64
	// Lost tells that the file ends too early.
	Lost bool
}

// A Group is a process group, as one of its processes knows it.
type Group struct {
	Name  string  // differs between ranks of equal groups
	Desc  string  // "EXPERT_MODEL_PARALLEL_GROUP"; "" is unknown
	Ranks []int32 // of the job, in order; nil is unknown
	// ID is a number that the recorder has for it; Unknown. It tells groups of one process apart.
	ID int64
	// Enqueued is the last collective that the process entered, and Completed the last one that it
	// knows has ended; Unknown, which is also how PyTorch calls none at all.
	Enqueued, Completed int64
	// Counted tells that somebody tells these two, if only that there are none.
	Counted bool
	// Size is how many ranks it has, and Member which of them the process is; Unknown.
	Size, Member int32
	// Ended tells that the process gave it up in good order, and Aborted that it did not.
	Ended, Aborted bool
}

// Nameless is the name of the group of collectives of which a log does not tell it.
const Nameless = "?"

// NewGroup returns a group of which nothing else is known.
func NewGroup(name, desc string) Group {
	return Group{Name: name, Desc: desc, ID: Unknown, Enqueued: Unknown, Completed: Unknown, Size: Unknown, Member: Unknown}
}

// A Thread is where one stands.
type Thread struct {
	Name  string // "MainThread"; "" is unknown
	State string // "idle", "active", "active+gil"; "" is unknown
	Stack int32  // index into FlightDump.Stacks; Unknown
}

// OpState is how far a collective is, as its process knows.
type OpState uint8

const (
	Scheduled OpState = iota // entered
	Started                  // runs on the device, as far as anybody looked
	Completed
)

// String returns the word of a table.
func (s OpState) String() string { return [...]string{"scheduled", "started", "completed"}[s] }

// An Op is a collective, or a send or a receive, that a process entered.
type Op struct {
	Group int32 // index into FlightDump.Groups
	// Seq counts collectives of the group, and P2P what is sent and received.
	Seq, P2P int64
	Record   int64     // counts what the process entered, in all groups
	Name     trace.Sym // "all_reduce", "send", as PyTorch or NCCL call it
	// Src and Dst are ranks in the group, of a send or a receive; Unknown.
	Src, Dst  int32
	In, Out   Shape
	InT, OutT trace.Sym // types of elements
	State     OpState
	Created   trace.Time // when the process entered it, Unix ns; 0 is unknown
	Stack     int32      // index into FlightDump.Stacks, of what is pending or came last; Unknown
	// Retired tells that the recorder no longer watches it: it has ended, or was given up.
	Retired bool
}

// IsP2P reports whether it is a send or a receive.
func (o *Op) IsP2P() bool { return o.Src >= 0 }

// Pending reports whether it has not ended, as far as its process knows.
func (o *Op) Pending() bool { return o.State != Completed && !o.Retired }

// A Shape is the sizes of some tensors. Equal ones have equal texts.
type Shape struct {
	Text     trace.Sym // "[[2048, 5120]]"
	Elements int64     // of the first tensor; Unknown
}

// A Frame is a function on a stack, the innermost first.
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

// Finish puts dumps in order and on Unix time, when all were read; east returns how far the clock of
// an input of a series.Set is ahead of that.
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

// shifted returns a time on another clock; an unknown one stays.
func shifted(t, off trace.Time) trace.Time {
	if t == 0 {
		return 0
	}
	return t - off
}

// Empty reports whether nobody tells what is in flight.
func (s *InFlight) Empty() bool {
	return s == nil || !slices.ContainsFunc(s.Dumps, func(d *FlightDump) bool { return d.By != Inspector })
}

// Shape returns the shape of sizes, which are written as a list of lists of numbers.
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
