package rows

import (
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
)

// names turns ids of StringIds into symbols. It only reads strings that are needed: the table holds environment
// variables and file contents, too.
type names struct {
	src   *Source
	conn  storage.Conn
	cache *trace.SymbolCache
	buf   []byte
	// table is the table being read, and row returns the number of its current row, for messages.
	table string
	row   func() int64

	// dense has symbols plus one by id, as nsys counts ids from 0. Larger ids are in sparse.
	dense  []trace.Sym
	sparse map[int64]trace.Sym
	// lost are the ids that table needed and that are missing. Each table reports them anew, since the number of
	// cores determines which tables share a connection.
	lost map[int64]bool

	texts  storage.Texts // nil until the first lookup
	failed bool
}

// maxDense bounds the ids of dense: 16 MB of symbols.
const maxDense = 1 << 22

func newNames(s *Source, conn storage.Conn) *names {
	return &names{src: s, conn: conn, cache: trace.NewSymbolCache(s.Options.Syms), sparse: map[int64]trace.Sym{}, lost: map[int64]bool{}}
}

// begin sets the table to be read next.
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

// lookup reads one string. If the id does not exist, it reports that and returns false.
func (n *names) lookup(id int64) (trace.Sym, bool) {
	if n.texts == nil && !n.failed {
		n.failed = !n.prepare()
	}
	if n.failed {
		return 0, false // already reported
	}
	text, found, err := n.texts.Find(id, n.buf)
	switch {
	case err != nil:
		n.src.Diag(trace.NsysTableDamaged, namesTable, 0, "damaged", "names are lost", err)
		return 0, false
	case !found:
		if _, told := n.src.lost.LoadOrStore(lostName{n.table, id}, true); !told { // tables may be scanned several times
			n.src.Diag(trace.NsysNameMissing, n.table, n.row(), id)
		}
		return 0, false
	}
	return n.cache.Intern(n.keep(text)), true
}

// A lostName is the id of a missing name, in the rows of a table.
type lostName struct {
	table string
	id    int64
}

// namesTable is the table of names by their ids.
const namesTable = "StringIds"

// prepare finds the table. If it cannot be read, that is reported once for all connections.
func (n *names) prepare() bool {
	table := n.src.find(namesTable)
	if table == "" {
		n.src.noNames.Do(func() { n.src.Diag(trace.NsysNoNames, "", 0) })
		return false
	}
	var err error
	if n.texts, err = n.conn.Texts(table, "id", "value"); err != nil {
		n.src.noNames.Do(func() {
			n.src.Diag(trace.NsysTableDamaged, namesTable, 0, "damaged", "names are lost", err)
		})
	}
	return err == nil
}

// keep keeps the buffer of a text for the next one.
func (n *names) keep(text []byte) []byte {
	if cap(text) > cap(n.buf) {
		n.buf = text[:0]
	}
	return text
}

// close ends the lookups.
func (n *names) close() error {
	if n.texts == nil {
		return nil
	}
	return n.texts.Close()
}
