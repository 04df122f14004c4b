package profile

import (
	"iter"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// CollectiveMatches are the collectives of some ranks: the parts of each rank, and which of them belong
// together. There may be tens of millions: they are passed one by one, and each is valid until the next.
type CollectiveMatches interface {
	// Matches passes the collectives that were seen on several ranks, on one clock. Those of a component are
	// consecutive and in order of their first arrival, as they are stored; byTime orders all of them by first
	// arrival.
	Matches(byTime bool) iter.Seq[*CollectiveMatch]
	// Parts passes the collective kernels of all ranks, by rank and start.
	Parts() iter.Seq[*Part]
}

// A CollectiveMatch is one collective as its ranks saw it: the kernels that ran on each of them, on one clock.
type CollectiveMatch struct {
	Name trace.Sym // of the kernel, on the rank with the lowest index
	// From the producer, as in [Collective]: 0 and -1 are unknown.
	Op, Dtype, Group trace.Sym
	In, Out          int64 // elements, the largest number on any rank
	GroupSize        int32
	AtLeast          int32 // as in [CollectiveTasks]
	// Sync means that no rank leaves before the last one has come. Only then does a rank that is early wait. All
	// leave together, unless Apart is set: then each leaves when it has its own part, as in a dispatch.
	Sync, Apart bool
	Step        StepKind  // of the step that requested it, StepOther if unknown
	Arrivals    []Arrival // by rank; at least two
	// Component numbers groups of ranks that meet directly or indirectly. Matches of a component are consecutive,
	// unless they are ordered by time.
	Component int32
	// First means that it is the first recorded collective of some rank: the others may have waited for that rank's
	// profiler to start.
	First bool
	// Bound is the largest possible offset between the clocks of its ranks, in ns: 0 on one host, -1 if unknown.
	Bound int64
	// Blur is the possible error of its time, as in [Meta.Blur].
	Blur int64
}

// FirstArrival returns the time at which the first rank came.
func (x *CollectiveMatch) FirstArrival() trace.Time {
	first := x.Arrivals[0].Start
	for _, a := range x.Arrivals[1:] {
		first = min(first, a.Start)
	}
	return first
}

// A Part is one rank's part in a collective, whether or not others were seen there.
type Part struct {
	Collective       // on the clock of its host
	Rank       int32 // index in Set.Ranks
	Matched    bool  // whether it is an arrival of a CollectiveMatch, or one side of a transfer
	// Refused means that others seemed to be there, but their clocks contradict that.
	Refused bool
}

// An Arrival is the time at which one rank came to a collective and left it.
type Arrival struct {
	Rank       int32 // index in Set.Ranks
	Start, End trace.Time
}

// Matches passes the matches of s.Collectives: see [CollectiveMatches].
func (s *Set) Matches(byTime bool) iter.Seq[*CollectiveMatch] {
	if s.Collectives == nil {
		return func(func(*CollectiveMatch) bool) {}
	}
	return s.Collectives.Matches(byTime)
}

// Parts passes the parts of s.Collectives: see [CollectiveMatches].
func (s *Set) Parts() iter.Seq[*Part] {
	if s.Collectives == nil {
		return func(func(*Part) bool) {}
	}
	return s.Collectives.Parts()
}

// elementBytes are the sizes of the elements of collectives, by the name of PyTorch's ScalarType. Exports of
// Nsight Systems count bytes.
var elementBytes = map[string]int64{
	"bytes": 1,
	"Byte":  1, "Char": 1, "Bool": 1,
	"Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1, "Float8_e8m0fnu": 1,
	"Float4_e2m1fn_x2": 1, // two elements of four bits
	"Half":             2, "BFloat16": 2, "Short": 2, "UInt16": 2,
	"Float": 4, "Int": 4, "UInt32": 4, "ComplexHalf": 4,
	"Double": 8, "Long": 8, "UInt64": 8, "ComplexFloat": 8,
	"ComplexDouble": 16,
}

// A busRule gives the share of its size that an operation moves over the slowest link of each rank, as defined
// by nccl-tests (doc/PERFORMANCE.md): times*(n-1)/n of it for n ranks, or all of it if times is 0.
type busRule struct {
	op    string // prefix of the name, in lower case, without underscores
	times float64
	// parts means that the size covers the parts of all ranks together. NCCL itself, and exports, count one rank's
	// part.
	parts bool
}

var busRules = []busRule{
	{"allreduce", 2, false},
	{"allgather", 1, true},
	{"reducescatter", 1, true}, // must come before reduce
	{"alltoall", 1, true},
	{"gather", 1, true},
	{"scatter", 1, true},
	{"broadcast", 0, false},
	{"reduce", 0, false},
	{"send", 0, false}, // also sendrecv
	{"recv", 0, false},
}

// busRuleOf returns the rule for an operation, nil if there is none.
func busRuleOf(op string) *busRule {
	op = strings.ReplaceAll(strings.ToLower(op), "_", "")
	op = strings.TrimPrefix(strings.TrimPrefix(op, "nccl"), "coalesced")
	for i := range busRules {
		if strings.HasPrefix(op, busRules[i].op) {
			return &busRules[i]
		}
	}
	return nil
}

// CollectiveBytes returns the size of a collective in bytes, -1 if unknown: the data of each rank before or
// after the collective, whichever is more.
func CollectiveBytes(op, dtype string, in, out int64, groupSize int32) int64 {
	bytes, n := elementBytes[dtype], max(in, out)
	if bytes == 0 || n < 0 {
		return -1
	}
	if min(in, out) < 0 {
		if rule := busRuleOf(op); rule != nil && rule.parts {
			if groupSize < 1 {
				return -1
			}
			n *= int64(groupSize)
		}
	}
	return n * bytes
}

// BusBytes returns the bytes that each rank of a collective moves over its slowest link, given the size of the
// collective, as defined by nccl-tests; 0 is unknown.
func BusBytes(op string, bytes int64, ranks int32) float64 {
	rule := busRuleOf(op)
	if rule == nil || bytes <= 0 || ranks < 2 {
		return 0
	}
	factor := 1.0
	if rule.times > 0 {
		factor = rule.times * float64(ranks-1) / float64(ranks)
	}
	return factor * float64(bytes)
}

// IsAllToAll reports whether a collective is an all-to-all.
func IsAllToAll(op string) bool {
	rule := busRuleOf(op)
	return rule != nil && rule.op == "alltoall"
}

// ElementBytes returns the size of an element of a collective, by its type; 0 is unknown.
func ElementBytes(dtype string) int64 { return elementBytes[dtype] }
