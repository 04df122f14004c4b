package rows

import (
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/trace"
)

// names turns ids of StringIds into symbols. Only what is asked for is read: the
// table holds environment variables and file contents, too.
type names struct {
	src   *Source
	conn  *sqlite.Conn
	cache *trace.SymbolCache
	buf   []byte
	// table is what is being read, and row the number of its row, for messages.
	table string
	row   func() int64

	// dense has symbols plus one by id; ids count from 0 in what nsys writes. Others
	// are in sparse.
	dense  []trace.Sym
	sparse map[int64]trace.Sym
	// lost are the ids that table asked for in vain. Every table says so again, since
	// it depends on the number of cores which tables share a connection.
	lost map[int64]bool

	stmt *sqlite.Stmt // nil until the first lookup
	// rows is where ids are, in files whose table lost its primary key.
	rows   map[int64]int64
	failed bool
}

// maxDense bounds the ids of dense: 16 MB of symbols.
const maxDense = 1 << 22

func newNames(s *Source, conn *sqlite.Conn) *names {
	return &names{src: s, conn: conn, cache: trace.NewSymbolCache(s.Options.Syms), sparse: map[int64]trace.Sym{}, lost: map[int64]bool{}}
}

// begin tells what is read from now on.
func (n *names) begin(table string, row func() int64) {
	n.table, n.row = table, row
	clear(n.lost)
}

// sym returns the symbol of an id, 0 if it is not in the table.
func (n *names) sym(id int64) trace.Sym {
	if uint64(id) < uint64(len(n.dense)) {
		if sym := n.dense[id]; sym != 0 {
			return sym - 1
		}
	} else if sym, ok := n.sparse[id]; ok {
		return sym
	}
	if n.lost[id] {
		return 0
	}
	sym, ok := n.lookup(id)
	if !ok {
		n.lost[id] = true
		return 0
	}
	if id < 0 || id >= maxDense {
		n.sparse[id] = sym
		return sym
	}
	if int(id) >= len(n.dense) {
		grown := make([]trace.Sym, max(id+1, min(2*int64(len(n.dense)), maxDense), 1024))
		copy(grown, n.dense)
		n.dense = grown
	}
	n.dense[id] = sym + 1
	return sym
}

// lookup reads one string. It returns false, and says so, if there is none of that id.
func (n *names) lookup(id int64) (trace.Sym, bool) {
	if n.stmt == nil {
		n.prepare()
	}
	if n.failed {
		return 0, false // and reported
	}
	row := id
	if n.rows != nil {
		at, ok := n.rows[id]
		if !ok {
			n.missing(id)
			return 0, false
		}
		row = at
	}
	n.stmt.BindInt64(1, row)
	defer n.stmt.Reset()
	found, err := n.stmt.Step()
	if err == nil && found && n.stmt.ColumnType(0) != sqlite.TypeText {
		err = errShape
	}
	if err != nil {
		n.src.Diag(trace.NsysTableDamaged, "StringIds", 0, "damaged", "names are lost", err)
		return 0, false
	}
	if !found {
		n.missing(id)
		return 0, false
	}
	return n.cache.Intern(n.bytes(n.stmt, 0)), true
}

// missing reports a name that is not in the table.
func (n *names) missing(id int64) {
	n.src.Diag(trace.NsysNameMissing, n.table, n.row(), id)
}

// prepare finds out how strings are found. The id is the primary key in all that
// nsys writes; where it is not, looking for every name from the start of the
// table would take hours, and an index of rows is made once.
func (n *names) prepare() {
	table := n.src.schema.find("StringIds")
	if table == "" {
		n.failed = true
		n.src.noNames.Do(func() { n.src.Diag(trace.NsysNoNames, "", 0) })
		return
	}
	key, err := rowidName(n.conn, table)
	if err == nil && key != "id" {
		key = "rowid"
		err = n.index(table)
	}
	if err == nil {
		err = n.checkRows(table)
	}
	if err == nil {
		n.stmt, _, err = n.conn.PrepareTransient("SELECT value FROM " + quote(table) + " WHERE " + key + "=?1")
	}
	if n.failed = err != nil; n.failed {
		n.src.noNames.Do(func() { // every connection finds that out
			n.src.Diag(trace.NsysTableDamaged, "StringIds", 0, "damaged", "names are lost", err)
		})
	}
}

// checkRows returns an error if the rows at either end of the table are of another one.
func (n *names) checkRows(table string) error {
	columns, err := columnsOf(n.conn, table)
	if err != nil {
		return err
	}
	own, err := n.src.ownRows(n.conn, table, columns)
	return errors.Join(err, own.err)
}

// rowidName returns the column of table that is its rowid, "" if none is.
func rowidName(conn *sqlite.Conn, table string) (string, error) {
	stmt, _, err := conn.PrepareTransient("SELECT name FROM pragma_table_info(?1) WHERE pk=1 AND upper(type)='INTEGER'")
	if err != nil {
		return "", err
	}
	defer stmt.Finalize()
	stmt.BindText(1, table)
	row, err := stmt.Step()
	if err != nil || !row {
		return "", err
	}
	return stmt.ColumnText(0), nil
}

// index remembers the rows of all ids.
func (n *names) index(table string) error {
	stmt, _, err := n.conn.PrepareTransient("SELECT id, rowid FROM " + quote(table))
	if err != nil {
		return err
	}
	defer stmt.Finalize()
	n.rows = map[int64]int64{}
	for range n.src.header.size / 4 {
		row, err := stmt.Step()
		if err != nil || !row {
			break // what was found so far is of use
		}
		n.rows[stmt.ColumnInt64(0)] = stmt.ColumnInt64(1)
	}
	return nil
}

// bytes returns text or a blob, valid until the next call.
func (n *names) bytes(stmt *sqlite.Stmt, column int) []byte {
	size := stmt.ColumnLen(column)
	if size > cap(n.buf) {
		n.buf = make([]byte, size+size/2)
	}
	return n.buf[:stmt.ColumnBytes(column, n.buf[:size])]
}

// close ends the statement that looks names up.
func (n *names) close() {
	if n.stmt != nil {
		n.stmt.Finalize()
		n.stmt = nil
	}
}
