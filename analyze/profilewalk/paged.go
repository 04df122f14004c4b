package profilewalk

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// A Paged table maps mostly dense integers (symbols, correlation IDs) to values. It is an array in which only the
// pages in use take memory; integers far from the others are in a map. Values start as zero.
type Paged[T any] struct {
	first  int64 // page number of pages[0]
	pages  []*[pageSize]T
	inUse  int
	asked  int // number of lookups by At: an upper bound on the number of values
	sparse bool
	far    map[int64]*T
}

const (
	pageBits = 10
	pageSize = 1 << pageBits
	// maxPages bounds pages: room for all 32-bit ids, in 32 MB.
	maxPages = 1 << 22
	// roomBelow is the number of pages reserved before that of the first ID, because IDs come roughly in order.
	roomBelow = 16
	// IDs are sparse if pages, apart from the first alwaysDense, hold fewer than fill values on average: then a map
	// takes no more memory.
	fill, alwaysDense = pageSize / 16, 64
)

// At returns a pointer to a value, which may be modified.
func (p *Paged[T]) At(i int64) *T {
	p.asked++
	if n := i>>pageBits - p.first; uint64(n) < uint64(len(p.pages)) && p.pages[n] != nil {
		return &p.pages[n][i&(pageSize-1)]
	}
	return p.grow(i)
}

// Find returns a pointer to a value, or nil if At was never called for a value near it.
func (p *Paged[T]) Find(i int64) *T {
	if n := i>>pageBits - p.first; uint64(n) < uint64(len(p.pages)) && p.pages[n] != nil {
		return &p.pages[n][i&(pageSize-1)]
	}
	return p.far[i]
}

// grow returns a pointer to a value without a page. Once IDs are sparse, no more pages are added, so that no ID is in
// two places.
func (p *Paged[T]) grow(i int64) *T {
	if p.pages == nil {
		p.first = max(i>>pageBits-roomBelow, 0)
	}
	n := i>>pageBits - p.first
	p.sparse = p.sparse || p.inUse > alwaysDense+p.asked/fill
	if n < 0 || n >= maxPages || p.sparse {
		return p.distant(i)
	}
	if int(n) >= len(p.pages) {
		grown := make([]*[pageSize]T, max(int(n)+1, 2*len(p.pages)))
		copy(grown, p.pages)
		p.pages = grown
	}
	p.pages[n] = new([pageSize]T)
	p.inUse++
	return &p.pages[n][i&(pageSize-1)]
}

func (p *Paged[T]) distant(i int64) *T {
	v := p.far[i]
	if v == nil {
		if p.far == nil {
			p.far = map[int64]*T{}
		}
		v = new(T)
		p.far[i] = v
	}
	return v
}

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
