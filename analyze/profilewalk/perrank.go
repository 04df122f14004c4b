package profilewalk

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// A PerRank holds a T for each rank that At was called for. A stream has few of the ranks of a set, which may be
// thousands, so a T for each would take memory in proportion to streams times ranks. The zero value is empty.
type PerRank[T any] struct {
	at    map[int32]*T
	ranks []int32 // ranks that At was called for
	last  int32   // rank of lastT, because work of one rank comes in a row
	lastT *T
}

// At returns the T of a rank, which starts as zero.
func (p *PerRank[T]) At(rank int32) *T {
	if p.lastT != nil && rank == p.last {
		return p.lastT
	}
	at := p.at[rank]
	if at == nil {
		if p.at == nil {
			p.at = map[int32]*T{}
		}
		at = new(T)
		p.at[rank], p.ranks = at, append(p.ranks, rank)
	}
	p.last, p.lastT = rank, at
	return at
}

// Find returns the T of a rank, or nil if At was not called for it.
func (p *PerRank[T]) Find(rank int32) *T {
	return p.at[rank]
}

// All yields the ranks that At was called for, in order.
func (p *PerRank[T]) All() iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		slices.Sort(p.ranks)
		for _, rank := range p.ranks {
			if !yield(rank, p.Find(rank)) {
				return
			}
		}
	}
}

// Results counts what calls with one name returned. The zero value is empty.
type Results struct {
	Known  int64           // calls whose result was recorded
	failed map[int32]int64 // by result; nil if none failed
}

// Add counts a call that returned result, which may be [profile.UnknownResult].
func (r *Results) Add(result int32) {
	if result == profile.UnknownResult {
		return
	}
	r.Known++
	if !profile.Failed(result) {
		return
	}
	if r.failed == nil {
		r.failed = map[int32]int64{}
	}
	r.failed[result]++
}

// Merge adds the counts of o.
func (r *Results) Merge(o *Results) {
	r.Known += o.Known
	if r.failed == nil && len(o.failed) > 0 {
		r.failed = map[int32]int64{}
	}
	for result, n := range o.failed {
		r.failed[result] += n
	}
}

// Failed returns the number of calls that failed; -1 is unknown.
func (r *Results) Failed() int64 {
	if r.Known == 0 {
		return -1
	}
	n := int64(0)
	for _, k := range r.failed {
		n += k
	}
	return n
}

// Errors returns the results of failed calls, most frequent first.
func (r *Results) Errors() []int32 {
	return order.Largest(r.failed)
}

// String lists the number of failed calls by error, most frequent first: "558 cudaErrorLaunchOutOfResources (701)".
func (r *Results) String() string {
	list := order.Each(r.Errors(), func(result int32) string { return fmt.Sprintf("%d %s", r.failed[result], ErrorName(result)) })
	return strings.Join(list, ", ")
}

// ErrorName returns the name of a call's result with its number: "cudaErrorLaunchOutOfResources (701)".
func ErrorName(result int32) string {
	return fmt.Sprintf("%s (%d)", profile.ResultName(result), result)
}
