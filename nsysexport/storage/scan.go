package storage

import (
	"slices"
)

// A scan passes the rows of a table: those of a [tree] until that finds something odd, then those of a [pass],
// which can handle anything.
type scan struct {
	tree *tree // nil from then on
	of   *database
	*pass
}

// newScan begins to read columns of a table.
func (c *conn) newScan(table string, columns []string) (*scan, error) {
	declared, err := c.Columns(table)
	if err != nil {
		return nil, err
	}
	own, err := c.of.ownRows(c.Conn, table, declared)
	if err != nil {
		return nil, err
	}
	p, err := newPass(c.Conn, table, columns, own)
	if err != nil {
		return nil, err
	}
	return &scan{c.of.newTree(declared, columns, own), c.of, p}, nil
}

// newTree returns a tree that reads columns of a table from its pages; nil if something is odd already, so that
// SQLite has to read the table.
func (d *database) newTree(declared []Column, columns []string, own bounds) *tree {
	if !d.header.plain || d.header.cut() || d.state.TablesDamaged || own.err != nil || own.root == 0 {
		return nil
	}
	file := pageFile{ReaderAt: d.file, count: uint32(d.header.pages()), size: int(d.header.page)}
	t := &tree{pages: leafPages{file: file, root: own.root}}
	t.rows = rowReader{file: &t.pages.file, longest: uint64(d.longest())}
	keys := 0
	for _, c := range declared {
		t.rows.columns = append(t.rows.columns, columnTypes[c.Kind])
		if c.Key {
			keys++
		}
	}
	for i, c := range declared {
		if keys == 1 && c.Key && c.Kind == "INTEGER" {
			t.rows.columns[i] = rowNumbers
		}
	}
	for _, name := range columns {
		at := slices.IndexFunc(declared, func(c Column) bool { return c.Name == name })
		if at < 0 || t.rows.columns[at] == someType {
			return nil
		}
		t.rows.selected = append(t.rows.selected, at)
	}
	return t
}

// Within omits irrelevant rows, as far as that is cheaper than reading them.
func (s *scan) Within(w *Window) {
	if s.tree != nil {
		s.of.sift(s.tree, s.table, w)
	}
}

// Next moves to the next row, and returns false if there is none.
func (s *scan) Next() bool {
	if s.tree == nil {
		return s.pass.Next()
	}
	ok, over := s.tree.move()
	passed := s.tree.read
	switch {
	case ok:
		s.read = passed
		return true
	case over:
		s.read = passed
		s.holes = s.tree.holes
		s.checkHoles()
		return false
	}
	// Start over, as SQLite's verdict on the rows before matters, too: whether their numbers were in order.
	s.tree, s.read = nil, 0
	for s.read < passed {
		if !s.pass.Next() {
			return false
		}
	}
	return s.pass.Next()
}

func (s *scan) Null(column int) bool {
	if s.tree != nil {
		return s.tree.rows.Null(column)
	}
	return s.pass.Null(column)
}

func (s *scan) Kind(column int) Kind {
	if s.tree != nil {
		return s.tree.rows.Kind(column)
	}
	return s.pass.Kind(column)
}

func (s *scan) Int(column int) int64 {
	if s.tree != nil {
		return s.tree.rows.Int(column)
	}
	return s.pass.Int(column)
}

func (s *scan) Ints(none, into []int64) {
	if s.tree != nil {
		s.tree.rows.Ints(none, into)
		return
	}
	s.pass.Ints(none, into)
}

func (s *scan) Float(column int) float64 {
	if s.tree != nil {
		return s.tree.rows.Float(column)
	}
	return s.pass.Float(column)
}

func (s *scan) Bytes(column int, buf []byte) []byte {
	if s.tree != nil {
		return s.tree.rows.Bytes(column, buf)
	}
	return s.pass.Bytes(column, buf)
}
