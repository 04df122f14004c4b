package storage

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// A tree passes the rows of a table straight from the pages of a file, in the order of their numbers, in a
// fraction of SQLite's time. It only handles intact pages: at anything that SQLite would not have written, it
// stops before the current row, and leaves the rest to SQLite. See
// https://www.sqlite.org/fileformat.html#b_tree_pages.
type tree struct {
	pages leafPages
	leaf  page
	cells []cell // of leaf
	next  int    // index in cells
	last  int64
	began bool
	holes int64 // row numbers missing between others
	read  int64 // rows read, including omitted ones
	rows  rowReader
	sieve *sieve // nil omits nothing
}

// move moves to the next row. over means that there are no more; if both results are false, something is odd.
func (t *tree) move() (ok, over bool) {
	for {
		if t.next == len(t.cells) {
			if ok, over = t.turn(); !ok {
				return false, over
			}
		}
		c := &t.cells[t.next]
		if !c.outside && !t.rows.read(t.leaf.data, c) {
			return false, false
		}
		if t.began {
			if c.number <= t.last {
				return false, false
			}
			t.holes += c.number - t.last - 1
		}
		t.next, t.last, t.began, t.read = t.next+1, c.number, true, t.read+1
		if !c.outside {
			return true, false
		}
	}
}

// turn moves to the next leaf that may have relevant rows.
func (t *tree) turn() (ok, over bool) {
	s := t.sieve
	if t.leaf, ok, over = t.pages.next(); !ok {
		switch {
		case !over || s == nil:
		case s.known == nil:
			s.of.keep(s, &zones{slices.Clip(s.zones), t.read, t.holes})
		default:
			t.read, t.holes = s.known.rows, s.known.holes
		}
		return false, over
	}
	if t.cells, ok = t.leaf.soundCells(t.cells[:0]); !ok {
		return false, false
	}
	t.next = 0
	if s == nil {
		return true, false
	}
	s.mark(t.leaf, t.pages.at, t.cells)
	if len(s.jumps) > 0 && s.jumps[0].page == t.pages.at {
		t.began, t.read, s.jumps = false, s.jumps[0].rows, s.jumps[1:]
	}
	return true, false
}

// leafPages iterates over the leaves of a table.
type leafPages struct {
	file  pageFile
	root  uint32
	path  [][]uint32 // for each page from the root to the leaf, its children still to come
	at    uint32     // current leaf
	began bool
}

// deepest is the largest number of levels of pages of a table.
const deepest = 20

// next returns the next leaf.
func (l *leafPages) next() (leaf page, ok, over bool) {
	number := l.root
	if l.began {
		for len(l.path) > 0 && len(l.path[len(l.path)-1]) == 0 {
			l.path = l.path[:len(l.path)-1]
		}
		if len(l.path) == 0 {
			return page{}, false, true
		}
		number = l.step()
	}
	l.began = true
	for {
		p, ok := l.read(number)
		switch {
		case !ok:
			return page{}, false, false
		case p.isLeaf():
			l.at = number
			return p, true, false
		case !p.isInterior() || !p.soundInterior() || len(l.path) == deepest:
			return page{}, false, false
		}
		children := p.children()
		l.path = append(l.path, append(children[1:], children[0])) // the first child is the rightmost one
		number = l.step()
	}
}

// step returns the page that comes next.
func (l *leafPages) step() uint32 {
	next := &l.path[len(l.path)-1]
	number := (*next)[0]
	*next = (*next)[1:]
	return number
}

// read reads a page, together with the pages after it that will be needed next.
func (l *leafPages) read(number uint32) (page, bool) {
	if data := l.file.held(number); data != nil {
		return page{data: data}, true
	}
	along := uint32(1)
	if len(l.path) > 0 {
		for _, child := range l.path[len(l.path)-1] {
			if child != number+along || along == l.file.maxPages() {
				break
			}
			along++
		}
	}
	data := l.file.read(number, along)
	return page{data: data}, data != nil
}

// A pageFile reads pages of a file, several at a time.
type pageFile struct {
	io.ReaderAt
	count uint32 // number of pages in the file
	size  int    // of a page
	first uint32 // the first one held
	data  []byte // content of the pages held
	reads uint32
}

// slack is the number of readable bytes after a page, so that all integers can be read as eight bytes.
const slack = 8

// maxHeld is the largest number of pages that are read at a time. The first ones are read one by one: often
// only one row is needed.
const maxHeld = 16

func (f *pageFile) maxPages() uint32 { return min(f.reads+1, maxHeld) }

// held returns a page that was read; nil if it was not.
func (f *pageFile) held(number uint32) []byte {
	at := int64(number) - int64(f.first)
	if f.first == 0 || at < 0 || (at+1)*int64(f.size) > int64(len(f.data)) {
		return nil
	}
	return f.data[at*int64(f.size):][: f.size : f.size+slack]
}

// read reads pages from number on, and returns the first; nil if the file lacks it. It discards the pages that
// were read before.
func (f *pageFile) read(number, along uint32) []byte {
	f.reads++
	if !f.has(number) || !f.has(number+along-1) {
		return nil
	}
	f.first = 0
	n := int(along) * f.size
	if n+slack > cap(f.data) {
		f.data = memory.Huge(make([]byte, n+slack))
	}
	f.data = f.data[:n]
	if _, err := f.ReadAt(f.data, int64(number-1)*int64(f.size)); err != nil {
		return nil
	}
	f.first = number
	return f.held(number)
}

// lockedByte is the byte that SQLite locks, whose page belongs to no table.
const lockedByte = 1 << 30

// has reports whether a table may have a page. The first one belongs to the list of tables.
func (f *pageFile) has(number uint32) bool {
	return number > 1 && number <= f.count && int64(number-1) != lockedByte/int64(f.size)
}

// overflow appends size bytes of a row from overflow pages, starting at page from.
func (f *pageFile) overflow(to []byte, from uint32, size int) ([]byte, bool) {
	page := make([]byte, f.size)
	for size > 0 {
		if !f.has(from) {
			return to, false
		}
		if _, err := f.ReadAt(page, int64(from-1)*int64(f.size)); err != nil {
			return to, false
		}
		from = binary.BigEndian.Uint32(page)
		n := min(size, len(page)-4)
		to, size = append(to, page[4:4+n]...), size-n
	}
	return to, true
}
