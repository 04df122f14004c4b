// Package flight holds what processes say of the collectives that they have in flight: which
// they entered last, and which have not ended. Flight recorders of PyTorch fill it.
//
// It is a picture of one moment, for hangs. What profilers record of collectives over time is
// in package profile.
package flight

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// A Set is what several processes say. Readers of several inputs may add to it at once.
type Set struct {
	Syms  *trace.Symbols
	Dumps []*Dump // by the names of their files, once all are read

	mu sync.Mutex
}

// New returns an empty set.
func New(syms *trace.Symbols) *Set { return &Set{Syms: syms} }

// Unknown is a number that nobody tells.
const Unknown = -1

// A Dump is what one process says.
type Dump struct {
	File    string
	Rank    int32  // in the job; Unknown
	Version string // of the format; "" is unknown
	NCCL    string // version; "" is unknown
	Groups  []Group
	Ops     []Op       // in the order in which the process entered them
	Stacks  [][]Frame  // of Ops
	Time    trace.Time // the latest that it tells of; 0 is unknown
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
}

// State is how far a collective is, as its process knows.
type State uint8

const (
	Scheduled State = iota // entered
	Started                // runs on the device, as far as anybody looked
	Completed
)

// String is the word of a table.
func (s State) String() string { return [...]string{"scheduled", "started", "completed"}[s] }

// An Op is a collective, or a send or a receive, that a process entered.
type Op struct {
	Group int32 // index into Dump.Groups
	// Seq counts collectives of the group, and P2P what is sent and received.
	Seq, P2P int64
	Record   int64     // counts what the process entered, in all groups
	Name     trace.Sym // "all_reduce", "send", as PyTorch or NCCL call it
	// Src and Dst are ranks in the group, of a send or a receive; Unknown.
	Src, Dst  int32
	In, Out   Shape
	InT, OutT trace.Sym // types of elements
	State     State
	Created   trace.Time // when the process entered it, Unix ns; 0 is unknown
	Stack     int32      // index into Dump.Stacks; Unknown
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
func (s *Set) Add(d *Dump) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Dumps = append(s.Dumps, d)
}

// Finish puts dumps in order, when all were read.
func (s *Set) Finish() {
	slices.SortStableFunc(s.Dumps, func(a, b *Dump) int { return strings.Compare(a.File, b.File) })
}

// Empty reports whether there is no dump.
func (s *Set) Empty() bool { return s == nil || len(s.Dumps) == 0 }

// Shape returns the shape of sizes, which are written as a list of lists of numbers.
func (s *Set) Shape(sizes [][]int64) Shape {
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
