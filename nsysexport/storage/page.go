package storage

import (
	"encoding/binary"
	"math"
)

// Kinds of pages of tables. See https://www.sqlite.org/fileformat.html#b_tree_pages.
const (
	interiorPage = 5
	leafPage     = 13

	leafHead = 8 // bytes before the places of cells
)

// A page is a page of the file.
type page struct {
	data  []byte
	start int // offset of the tree page's header, which follows the file header on the first page
}

// isLeaf and isInterior report the kind of a page, if its header is plausible.
func (p page) isLeaf() bool     { return p.data[p.start] == leafPage && p.fits(leafHead) }
func (p page) isInterior() bool { return p.data[p.start] == interiorPage && p.fits(12) }

// fits reports whether the cells listed by a page are within it.
func (p page) fits(head int) bool {
	n := p.cells()
	if p.start+head+2*n > len(p.data) || n == 0 {
		return false
	}
	for i := range n {
		if at := p.cellAt(head, i); at < p.start+head+2*n || at > len(p.data)-4 {
			return false
		}
	}
	return true
}

// A cell is a row of a leaf, or the part of it on the leaf.
type cell struct {
	number int64 // of the row
	size   int   // of the whole row, in bytes
	from   int   // offset of the row, after its number
	to     int   // end of the row, or of its part on this page; the number of the overflow page follows
	// outside means that the row is irrelevant to the reader: see [sieve].
	outside bool
}

// soundCells appends the cells of a leaf to a list, and reports whether the page is certainly valid for SQLite,
// which checks all cells first. SQLite also accepts some pages that this rejects.
func (p page) soundCells(list []cell) ([]cell, bool) {
	for i := range p.cells() {
		at := p.cellAt(leafHead, i)
		size, n := varint(p.data[at:])
		number, m := varint(p.data[at+n:])
		if n == 0 || m == 0 || size == 0 || size > math.MaxInt32 {
			return list, false
		}
		c := cell{number: int64(number), size: int(size), from: at + n + m}
		c.to = c.from + localSize(c.size, len(p.data))
		end := c.to
		if end < c.from+c.size {
			end += 4 // for the overflow page
		}
		if end > len(p.data) {
			return list, false
		}
		list = append(list, c)
	}
	return list, p.cells() <= (len(p.data)-leafHead)/minCell
}

// soundInterior reports whether an interior page is certainly valid for SQLite, which accepts some that this
// rejects.
func (p page) soundInterior() bool {
	for i := range p.cells() {
		at := p.cellAt(12, i)
		if _, n := varint(p.data[at+4:]); n == 0 {
			return false
		}
	}
	return p.cells() <= (len(p.data)-leafHead)/minCell
}

// minCell is the smallest size of a cell, with its pointer.
const minCell = 6

func (p page) cells() int { return int(binary.BigEndian.Uint16(p.data[p.start+3:])) }

func (p page) cellAt(head, i int) int {
	return int(binary.BigEndian.Uint16(p.data[p.start+head+2*i:]))
}

// children returns the pages below an interior page.
func (p page) children() []uint32 {
	list := []uint32{binary.BigEndian.Uint32(p.data[p.start+8:])}
	for i := range p.cells() {
		list = append(list, binary.BigEndian.Uint32(p.data[p.cellAt(12, i):]))
	}
	return list
}

// A record is a row in the file format: the types of its columns, and the part of their values on the page. See
// https://www.sqlite.org/fileformat.html#record_format.
type record struct {
	kinds []uint64
	body  []byte
	// The rest is on overflow pages: more bytes from page next on.
	more int
	next uint32
}

// record returns a row of a leaf.
func (p page) record(i int) (r record, ok bool) {
	cell := p.data[p.cellAt(leafHead, i):]
	size, n := varint(cell)
	_, m := varint(cell[n:])
	if n == 0 || m == 0 || size == 0 || size > math.MaxInt32 {
		return record{}, false
	}
	kinds, ok := kindsOf(cell)
	head, _ := varint(cell[n+m:])
	local := localSize(int(size), len(p.data))
	if !ok || n+m+local > len(cell) || int(head) > local {
		return record{}, false
	}
	r = record{kinds: kinds, body: cell[n+m+int(head) : n+m+local], more: int(size) - local}
	if r.more > 0 {
		if n+m+local+4 > len(cell) {
			return record{}, false
		}
		r.next = binary.BigEndian.Uint32(cell[n+m+local:])
	}
	return r, true
}

// localSize returns how many bytes of a row of the given size are on its leaf.
func localSize(size, usable int) int {
	if size <= usable-35 {
		return size
	}
	least := (usable-12)*32/255 - 23
	if k := least + (size-least)%(usable-4); k <= usable-35 {
		return k
	}
	return least
}

// A value is a value of a record: a number, or the part of a text on the page.
type value struct {
	null, isText bool
	n            int64
	text         []byte
}

// values returns the values of a record, as far as they are on its page.
func (r *record) values() []value {
	list := make([]value, 0, len(r.kinds))
	body := r.body
	for _, kind := range r.kinds {
		v := value{null: kind == 0, isText: kind >= 12}
		size := [...]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}
		n := 0
		if v.isText {
			n = int(min(kind-12, math.MaxInt32) / 2)
		} else {
			n = size[kind]
		}
		if n > len(body) {
			n = len(body)
		}
		if v.isText {
			v.text = body[:n]
		} else if n > 0 {
			v.n = int64(int8(body[0]))
			for _, b := range body[1:n] {
				v.n = v.n<<8 | int64(b)
			}
		} else if kind == 9 {
			v.n = 1
		}
		list, body = append(list, v), body[n:]
	}
	return list
}
