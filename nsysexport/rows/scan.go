package rows

import (
	"fmt"

	"github.com/sgtrace/sgtrace/nsysexport/store"
	"github.com/sgtrace/sgtrace/trace"
)

// A cursor is at a row of a table.
type cursor struct {
	rows  store.Rows
	sel   *selection
	names *names
	base  int64 // what is added to times
}

// int returns the value of a column.
func (c *cursor) int(column int) int64 {
	p := &c.sel.result[column]
	if p.at < 0 {
		return p.none
	}
	v := c.rows.Int(int(p.at))
	if v == 0 && !p.sure && c.rows.Null(int(p.at)) {
		return p.none
	}
	return v
}

// time returns the value of a column that holds a time.
func (c *cursor) time(column int) trace.Time { return trace.Time(c.int(column) + c.base) }

// null reports whether a column has no value.
func (c *cursor) null(column int) bool {
	at := c.sel.result[column].at
	return at < 0 || c.rows.Null(int(at))
}

// float returns the value of a column, 0 if it has none.
func (c *cursor) float(column int) float64 {
	if at := c.sel.result[column].at; at >= 0 {
		return c.rows.Float(int(at))
	}
	return 0
}

// bytes returns the text or blob of a column, valid until the next call.
func (c *cursor) bytes(column int) []byte {
	at := c.sel.result[column].at
	if at < 0 {
		return nil
	}
	return c.names.keep(c.rows.Bytes(int(at), c.names.buf))
}

// text returns the text of a column.
func (c *cursor) text(column int) string { return string(c.bytes(column)) }

// textSym returns the symbol of a column's text.
func (c *cursor) textSym(column int) trace.Sym { return c.names.cache.Intern(c.bytes(column)) }

// name returns the symbol of a column that refers to StringIds. Tools that
// rewrite exports put the text itself there.
func (c *cursor) name(column int) trace.Sym {
	at := int(c.sel.result[column].at)
	if at < 0 {
		return 0
	}
	// No name begins with a digit, so that text is 0 as a number.
	if id := c.rows.Int(at); id != 0 {
		return c.names.sym(id)
	}
	switch c.rows.Kind(at) {
	case store.Integer:
		return c.names.sym(0)
	case store.Text:
		return c.textSym(column)
	}
	return 0
}

// scan passes the rows of a table to each, in the order of the file, until that
// returns false. A table that does not exist has no rows; one that is damaged
// those before the damage.
func (s *Source) scan(spec *tableSpec, each func(*cursor) bool) {
	c, err := s.connect()
	if err != nil {
		s.Diag(trace.NsysTableUnreadable, spec.names[0], 0, err)
		return
	}
	defer s.release(c)
	s.scanOn(c, spec, each)
}

func (s *Source) scanOn(c *connection, spec *tableSpec, each func(*cursor) bool) {
	sel, err := s.choose(c, spec)
	if err != nil {
		s.Diag(trace.NsysTableUnreadable, spec.names[0], 0, err)
		return
	}
	if sel == nil {
		return
	}
	if sel.missing != "" {
		if c.Rows(sel.table) == 0 {
			return // all tables exist in exports with --lazy=false
		}
		s.Diag(trace.NsysColumnMissing, sel.table, 0, sel.missing)
		return
	}
	rows, err := c.Scan(sel.table, sel.columns)
	if err != nil {
		s.damaged(spec, sel.table, 0, &store.Loss{Err: err, Behind: true})
		return
	}
	defer rows.Close()
	cur := cursor{rows: rows, sel: sel, names: c.names, base: s.base}
	c.names.begin(sel.table, rows.Read)
	for rows.Next() {
		if !each(&cur) {
			return
		}
	}
	if lost := rows.Loss(); lost != nil {
		s.damaged(spec, sel.table, rows.Read(), lost)
	}
}

// damaged reports what damage cost of a table, of which so many rows were read.
func (s *Source) damaged(spec *tableSpec, table string, read int64, l *store.Loss) {
	if spec.quiet {
		return
	}
	state := "damaged"
	if s.store.State().Cut() {
		state = "cut off"
	}
	s.Diag(trace.NsysTableDamaged, table, l.At+1, state, fmt.Sprintf("%d rows were read, %v are lost", read, l), l.Err)
}

// Counts returns how many rows the largest tables have, each as far as that is
// credible: what two exports of one session have alike.
func (s *Source) Counts() (rows [5]int64) {
	for i, spec := range []*tableSpec{&kernelTable, &apiTable, &memcpyTable, &memsetTable, &nvtxTable} {
		rows[i] = s.count(spec)
	}
	return rows
}

// count returns how many rows a table has, as far as that is credible.
func (s *Source) count(spec *tableSpec) int64 {
	c, err := s.connect()
	if err != nil {
		return 0
	}
	defer s.release(c)
	for _, name := range spec.names {
		if table := s.find(name); table != "" {
			return max(c.Rows(table), 0)
		}
	}
	return 0
}
