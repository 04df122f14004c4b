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

// A page is one of the file.
type page struct {
	data  []byte
	start int // of the head of the tree's page: behind the header of the file on the first one
}

// isLeaf and isInterior report what a page is, as far as its head can be right.
func (p page) isLeaf() bool     { return p.data[p.start] == leafPage && p.fits(leafHead) }
func (p page) isInterior() bool { return p.data[p.start] == interiorPage && p.fits(12) }

// fits reports whether the cells that a page says it has are within it.
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

// A cell is a row of a leaf, as far as it lies there.
type cell struct {
	number int64 // of the row
	size   int   // of all of the row, bytes
	from   int   // where it begins, behind its number
	to     int   // where it ends, or goes on elsewhere: the number of that page is next
	// outside tells that the row does not matter to who reads it: see [sieve].
	outside bool
}

// soundCells appends the cells of a leaf to a list, and reports whether SQLite takes the page,
// which looks at all of them first. It takes some that this does not.
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
			end += 4 // where the rest is
		}
		if end > len(p.data) {
			return list, false
		}
		list = append(list, c)
	}
	return list, p.cells() <= (len(p.data)-leafHead)/minCell
}

// soundInterior reports whether SQLite takes a page. It takes some that this does not.
func (p page) soundInterior() bool {
	for i := range p.cells() {
		at := p.cellAt(12, i)
		if _, n := varint(p.data[at+4:]); n == 0 {
			return false
		}
	}
	return p.cells() <= (len(p.data)-leafHead)/minCell
}

// minCell is the least that a cell takes, with what points to it.
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

// A record is a row as it lies in a file: the types of its columns, and what is on the page
// of their values. See https://www.sqlite.org/fileformat.html#record_format.
type record struct {
	kinds []uint64
	body  []byte
	// What does not fit on the page goes on from another one: more bytes from page next.
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

// localSize returns how much of a row of a size lies on its leaf.
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

// A value is one of a record: a number, or a text as far as it is on the page.
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
