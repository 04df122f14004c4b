package walk

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
