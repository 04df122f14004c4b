package profile

import (
	"iter"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// CollectiveMatches are the collectives of some ranks: what each rank did, and which of that is one
// collective. There may be tens of millions: they are passed one by one, and what is passed
// is valid until the next.
type CollectiveMatches interface {
	// Matches passes the collectives that were seen on several ranks, on one clock. Those
	// of ranks that meet are together, by their first arrival, as they are held; byTime asks
	// for all by their first arrival.
	Matches(byTime bool) iter.Seq[*CollectiveMatch]
	// Parts passes the kernels of collectives of all ranks, by rank and start.
	Parts() iter.Seq[*Part]
}

// A CollectiveMatch is one collective as its ranks saw it: the kernels that ran on
// each of them, on one clock.
type CollectiveMatch struct {
	Name trace.Sym // of the kernel, on the rank with the lowest index
	// What the producer says, as in [Collective]: 0 and -1 are unknown.
	Op, Dtype, Group trace.Sym
	In, Out          int64 // elements, the most that a rank has
	GroupSize        int32
	// Sync tells that nobody leaves before the last rank has come. Only then a rank that is
	// there early waits. All leave together, unless Apart tells that each leaves when it
	// has its own part, as in a dispatch.
	Sync, Apart bool
	Step        StepKind  // of the step that asked for it, StepOther if nobody knows
	Arrivals    []Arrival // by rank; two at least
	// Component numbers the ranks that meet each other, directly or not. Matches of a component
	// follow each other, unless all were asked for by time.
	Component int32
	// First tells that it is the first one that was recorded of some rank: the others may have waited for that
	// rank's profiler to start.
	First bool
	// Bound is how far the clocks of its ranks may be off each other, in ns: 0 on one
	// host, -1 if it is unknown.
	Bound int64
	// Blur is how far it may be off its time, as [Meta.Blur].
	Blur int64
}

// FirstArrival returns when the first rank came.
func (x *CollectiveMatch) FirstArrival() trace.Time {
	first := x.Arrivals[0].Start
	for _, a := range x.Arrivals[1:] {
		first = min(first, a.Start)
	}
	return first
}

// A Part is what one rank did in a collective, whether others were seen there or not.
type Part struct {
	Collective       // on the clock of its host
	Rank       int32 // index into Set.Ranks
	Matched    bool  // it is an arrival of a CollectiveMatch, or one side of a transfer
	// Refused tells that others seemed to be there, which their clocks contradict.
	Refused bool
}

// An Arrival is when one rank came to a collective and when it left.
type Arrival struct {
	Rank       int32 // index into Set.Ranks
	Start, End trace.Time
}

// Matches passes those of s.Collectives; see there.
func (s *Set) Matches(byTime bool) iter.Seq[*CollectiveMatch] {
	if s.Collectives == nil {
		return func(func(*CollectiveMatch) bool) {}
	}
	return s.Collectives.Matches(byTime)
}

// Parts passes those of s.Collectives; see there.
func (s *Set) Parts() iter.Seq[*Part] {
	if s.Collectives == nil {
		return func(func(*Part) bool) {}
	}
	return s.Collectives.Parts()
}

// elementBytes are the sizes of what collectives move, by the name of PyTorch's
// ScalarType. Exports of Nsight Systems count bytes.
var elementBytes = map[string]int64{
	"bytes": 1,
	"Byte":  1, "Char": 1, "Bool": 1,
	"Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1, "Float8_e8m0fnu": 1,
	"Float4_e2m1fn_x2": 1, // two of four bits
	"Half":             2, "BFloat16": 2, "Short": 2, "UInt16": 2,
	"Float": 4, "Int": 4, "UInt32": 4, "ComplexHalf": 4,
	"Double": 8, "Long": 8, "UInt64": 8, "ComplexFloat": 8,
	"ComplexDouble": 16,
}

// A busRule says how much of its size an operation moves over the slowest link of
// each rank, as nccl-tests define it (doc/PERFORMANCE.md): times (n-1)/n of n ranks,
// or all.
type busRule struct {
	op    string // what its name begins with, in lower case, without underscores
	times float64
	// parts tells that the size is of the parts of all ranks together. What NCCL itself
	// counts, and exports have, is one rank's part.
	parts bool
}

var busRules = []busRule{
	{"allreduce", 2, false},
	{"allgather", 1, true},
	{"reducescatter", 1, true}, // before reduce
	{"alltoall", 1, true},
	{"gather", 1, true},
	{"scatter", 1, true},
	{"broadcast", 0, false},
	{"reduce", 0, false},
	{"send", 0, false}, // and sendrecv
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

// CollectiveBytes returns the size of a collective in bytes, -1 if it is not known: what each
// rank has in the end, or had in the beginning, whichever is more.
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

// BusBytes returns how many bytes each rank of a collective of some bytes moves over its slowest link, as nccl-tests define
// it; 0 is unknown.
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

// ElementBytes returns how large a number is that collectives move, by its type; 0 is unknown.
func ElementBytes(dtype string) int64 { return elementBytes[dtype] }
