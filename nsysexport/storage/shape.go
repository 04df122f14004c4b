package storage

import (
	"encoding/binary"
	"errors"
	"math"

	"zombiezen.com/go/sqlite"
)

// errShape is the error of pages that hold rows of another table.
var errShape = errors.New("its pages have rows of another table")

// bounds are the row numbers that can belong to a table: those in ]from, to].
type bounds struct {
	from, to int64
	root     uint32 // root page of the table; 0 is unknown
	err      error  // errShape if there are other rows
}

// ownRows determines whether the rows on the first and the last page of a table have the columns of the table.
// SQLite does not check: if a page of another table is in its place, the values appear under the wrong names.
// Misplaced pages in between are detected by their row numbers, which must increase.
func (d *database) ownRows(conn *sqlite.Conn, table string, columns []Column) (b bounds, err error) {
	b = bounds{from: noRow, to: math.MaxInt64}
	stmt, _, err := conn.PrepareTransient("SELECT rootpage FROM sqlite_master WHERE type='table' AND name=?1")
	if err != nil {
		return b, err
	}
	defer stmt.Finalize()
	stmt.BindText(1, table)
	if row, err := stmt.Step(); err != nil || !row {
		return b, err
	}
	root := stmt.ColumnInt64(0)
	b.root = uint32(root)
	first, last := d.edge(root, true), d.edge(root, false)
	firstFits, lastFits := first.fits(columns), last.fits(columns)
	switch {
	case firstFits && lastFits:
		return b, nil
	case !firstFits && !lastFits || first.isRoot || last.isRoot:
		return b, errShape
	case !firstFits:
		b.from = first.bound
	default:
		b.to = last.bound
	}
	b.err = errShape
	return b, nil
}

// An edge is the first or the last page with rows of a table.
type edge struct {
	page   []byte // nil if there is none, or if it is unreadable, as reading will show
	isRoot bool
	bound  int64 // the last row of the first page, or the row before the last page
}

// edge finds the first or the last page with rows. See https://www.sqlite.org/fileformat.html#b_tree_pages.
func (d *database) edge(root int64, first bool) (e edge) {
	const interior, leaf = 5, 13
	page := make([]byte, d.header.page)
	for depth := range deepest {
		if _, err := d.file.ReadAt(page, (root-1)*d.header.page); err != nil {
			return edge{}
		}
		cells := int(binary.BigEndian.Uint16(page[3:]))
		switch kind := page[0]; {
		case kind == leaf && cells > 0:
			e.page, e.isRoot = page, depth == 0
			return e
		case kind != interior || cells == 0 || 12+2*cells > len(page):
			return edge{}
		}
		place := 12
		if !first {
			place += 2 * (cells - 1)
		}
		at := int(binary.BigEndian.Uint16(page[place:]))
		if at > len(page)-5 {
			return edge{}
		}
		bound, _ := varint(page[at+4:])
		e.bound = int64(bound)
		root = int64(binary.BigEndian.Uint32(page[at:]))
		if !first {
			root = int64(binary.BigEndian.Uint32(page[8:]))
		}
	}
	return edge{}
}

// fits reports whether at least half of the rows of a page have the given columns. A few other rows are just
// damaged.
func (e *edge) fits(columns []Column) bool {
	if e.page == nil {
		return true
	}
	cells, fit := int(binary.BigEndian.Uint16(e.page[3:])), 0
	if 8+2*cells > len(e.page) {
		return true // damaged, as reading will show
	}
	for i := range cells {
		at := min(int(binary.BigEndian.Uint16(e.page[8+2*i:])), len(e.page))
		if kinds, ok := kindsOf(e.page[at:]); ok && alike(kinds, columns) {
			fit++
		}
	}
	return 2*fit >= cells
}

// alike reports whether values of these types can be those of columns.
func alike(kinds []uint64, columns []Column) bool {
	if len(kinds) > len(columns) {
		return false
	}
	kinds = append(kinds, make([]uint64, len(columns)-len(kinds))...) // for columns that were added later
	for i, c := range columns {
		isNull, isNumber, isText := kinds[i] == 0, kinds[i] > 0 && kinds[i] < 10, kinds[i] >= 13 && kinds[i]%2 == 1
		if c.NotNull && !c.Key && (isNull || isText && c.Kind == "INTEGER") || isNumber && c.Kind == "TEXT" {
			return false
		}
	}
	return true
}

// kindsOf reads the header of a row: the types of its columns.
func kindsOf(cell []byte) (kinds []uint64, ok bool) {
	for range 2 { // the size of the row, its number
		_, n := varint(cell)
		cell = cell[n:]
	}
	size, n := varint(cell)
	if n == 0 || size < uint64(n) || size > uint64(len(cell)) {
		return nil, false
	}
	for head := cell[n:size]; len(head) > 0; {
		kind, n := varint(head)
		if n == 0 {
			return nil, false
		}
		kinds, head = append(kinds, kind), head[n:]
	}
	return kinds, true
}

// varint reads a number of up to nine bytes; n is 0 if it is incomplete.
func varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return longVarint(b)
}

func longVarint(b []byte) (v uint64, n int) {
	if len(b) >= 4 { // enough for nearly all row numbers
		v = uint64(b[0]&0x7f)<<7 | uint64(b[1]&0x7f)
		if b[1] < 0x80 {
			return v, 2
		}
		if v = v<<7 | uint64(b[2]&0x7f); b[2] < 0x80 {
			return v, 3
		}
		if b[3] < 0x80 {
			return v<<7 | uint64(b[3]), 4
		}
		v = 0
	}
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | uint64(b[i]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
