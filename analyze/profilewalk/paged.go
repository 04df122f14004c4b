package profilewalk

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// A Paged table maps integers that are mostly dense (symbols, correlation ids) to
// values. It is an array of which only the pages in use take memory; what is far
// from the others is in a map. Values begin as zero.
type Paged[T any] struct {
	first  int64 // number of the page that pages begins with
	pages  []*[pageSize]T
	inUse  int
	asked  int // how many times a value was asked for: there are no more values
	sparse bool
	far    map[int64]*T
}

const (
	pageBits = 10
	pageSize = 1 << pageBits
	// maxPages bounds pages: room for all 32-bit ids, in 32 MB.
	maxPages = 1 << 22
	// roomBelow is how many pages lie before that of the first id: ids come in about
	// their order.
	roomBelow = 16
	// Ids are sparse where pages, the first few aside, hold fewer values than this
	// on average: then a map takes no more memory.
	fill, alwaysDense = pageSize / 16, 64
)

// At returns the place of a value, which may be written to.
func (p *Paged[T]) At(i int64) *T {
	p.asked++
	if n := i>>pageBits - p.first; uint64(n) < uint64(len(p.pages)) && p.pages[n] != nil {
		return &p.pages[n][i&(pageSize-1)]
	}
	return p.grow(i)
}

// Find returns the place of a value, nil if nothing near it was ever asked for.
func (p *Paged[T]) Find(i int64) *T {
	if n := i>>pageBits - p.first; uint64(n) < uint64(len(p.pages)) && p.pages[n] != nil {
		return &p.pages[n][i&(pageSize-1)]
	}
	return p.far[i]
}

// grow returns the place of a value that has no page. Once ids are sparse, no page
// is added any more, so that no id is in two places.
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

// A PerRank has a T for each rank that was asked for. A stream has few of the ranks of a set,
// which may be thousands: a T for all of them would take memory by streams times ranks. The
// zero value is empty.
type PerRank[T any] struct {
	at    map[int32]*T
	ranks []int32 // that were asked for
	last  int32   // the rank of lastT: work of one comes in a row
	lastT *T
}

// At returns what belongs to a rank, which begins as zero.
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

// Find returns what belongs to a rank, nil if it was not asked for.
func (p *PerRank[T]) Find(rank int32) *T {
	return p.at[rank]
}

// All passes the ranks that were asked for, in order.
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

// Results counts what calls of one name returned. The zero value has none.
type Results struct {
	Known  int64           // calls whose result was recorded
	failed map[int32]int64 // by result; nil is none
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

// Failed returns how many calls failed; -1 is unknown.
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

// Errors returns what the calls that failed returned, the most frequent first.
func (r *Results) Errors() []int32 {
	return order.Largest(r.failed)
}

// String lists how many calls failed with which error, the most frequent first:
// "558 cudaErrorLaunchOutOfResources (701)".
func (r *Results) String() string {
	list := order.Each(r.Errors(), func(result int32) string { return fmt.Sprintf("%d %s", r.failed[result], ErrorName(result)) })
	return strings.Join(list, ", ")
}

// ErrorName names what a call returned, with its number: "cudaErrorLaunchOutOfResources (701)".
func ErrorName(result int32) string {
	return fmt.Sprintf("%s (%d)", profile.ResultName(result), result)
}
