package order

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

// Get returns a value, zero if it was never set.
func (p *Paged[T]) Get(i int64) (v T) {
	if at := p.Find(i); at != nil {
		v = *at
	}
	return v
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
