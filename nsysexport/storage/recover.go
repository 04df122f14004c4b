package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// commonPage is the page size of all exports, for files without a valid first page.
const commonPage = 4096

// A recoveredTable is a table of a file whose list of tables is damaged.
type recoveredTable struct {
	name, sql string
	root      uint32
	guessed   bool // by its shape; otherwise it is in the intact part of the list
}

// recover finds the tables of a file whose list of tables is damaged, and opens a copy with a new list, without
// which SQLite reads nothing. It returns cause if it finds no tables of an export.
func (d *database) recover(cause error) error {
	if cause == errUnwritten || cause == errHeader {
		d.header.page = commonPage
	}
	tables, lost := d.findTables()
	names := order.Each(tables, func(t recoveredTable) string { return t.name })
	if !slices.ContainsFunc(tables, func(t recoveredTable) bool {
		return strings.HasPrefix(t.name, "CUPTI_ACTIVITY_KIND_") || t.name == "NVTX_EVENTS"
	}) {
		return cause // without events, the tables are useless
	}
	path, err := d.repair(tables)
	if err != nil {
		return errors.Join(cause, err)
	}
	d.path, d.tables = path, names
	d.state.TablesDamaged, d.state.Lost = true, lost
	for _, t := range tables {
		if t.guessed {
			d.state.Recovered = append(d.state.Recovered, t.name)
		}
	}
	return nil
}

// findTables finds the tables by the pages of the file: those in the intact part of the list, and others by
// their shape. lost is the number of tables with rows whose shape is ambiguous.
func (d *database) findTables() (tables []recoveredTable, lost int) {
	below, roots := map[uint32]bool{}, []uint32{}
	known := map[uint32]bool{} // roots in the list
	n := uint32(d.header.size / d.header.page)
	for i := uint32(1); i <= n; i++ {
		p, ok := d.page(i)
		switch {
		case !ok:
		case p.isInterior():
			roots = append(roots, i)
			for _, child := range p.children() {
				below[child] = true
			}
		case p.isLeaf():
			if listed := d.listed(p); len(listed) > 0 {
				tables = append(tables, listed...)
				below[i] = true
			}
			roots = append(roots, i)
		}
	}
	for _, t := range tables {
		known[t.root] = true
	}
	guesses := map[string][]recoveredTable{}
	for _, root := range roots {
		if below[root] || known[root] || root == 1 {
			continue
		}
		t, ok := d.guess(root)
		if !ok {
			lost++
			continue
		}
		guesses[t.name] = append(guesses[t.name], t)
	}
	for _, s := range shapes() {
		list := guesses[s.table]
		delete(guesses, s.table)
		isListed := slices.ContainsFunc(tables, func(t recoveredTable) bool { return t.name == s.table })
		if len(list) == 1 && !isListed {
			tables = append(tables, list[0])
		} else {
			lost += len(list)
		}
	}
	return tables, lost
}

// page reads a page; ok is false if there is none.
func (d *database) page(number uint32) (p page, ok bool) {
	p.data = make([]byte, d.header.page)
	if number == 1 {
		p.start = headerSize
	}
	_, err := d.file.ReadAt(p.data, int64(number-1)*d.header.page)
	return p, err == nil
}

// listed returns the tables of a leaf of the list of tables; none for any other leaf.
func (d *database) listed(p page) (tables []recoveredTable) {
	for i := range p.cells() {
		r, ok := p.record(i)
		if !ok || len(r.kinds) != 5 {
			continue
		}
		v := r.values()
		isEntry := v[0].isText && v[1].isText && v[2].isText && !v[3].isText && v[4].isText && bytes.HasPrefix(v[4].text, []byte("CREATE "))
		sql := string(v[4].text) + d.overflow(r.next, r.more)
		// A key of several columns would need an index, which is not read here.
		if !isEntry || string(v[0].text) != "table" || v[3].n <= 1 || strings.Contains(sql, "PRIMARY KEY (") {
			continue
		}
		tables = append(tables, recoveredTable{name: string(v[1].text), sql: sql, root: uint32(v[3].n)})
	}
	return tables
}

// overflow reads size bytes of a row from overflow pages, starting at page from.
func (d *database) overflow(from uint32, size int) string {
	var text []byte
	for len(text) < size && from != 0 {
		p, ok := d.page(from)
		if !ok {
			break
		}
		from = binary.BigEndian.Uint32(p.data)
		text = append(text, p.data[4:4+min(len(p.data)-4, size-len(text))]...)
	}
	return string(text)
}

// guess finds the shape of a table from some of its rows. ok is false if no shape matches, or several do.
func (d *database) guess(root uint32) (t recoveredTable, ok bool) {
	rows := d.someRows(root)
	if len(rows) == 0 {
		return t, false
	}
	for _, s := range shapes() {
		if !s.has(rows) {
			continue
		}
		if t.name != "" && t.name != s.table {
			return t, false
		}
		t = recoveredTable{name: s.table, sql: s.definition(), root: root, guessed: true}
	}
	return t, t.name != ""
}

// someRows returns the rows of the first leaf below a page.
func (d *database) someRows(number uint32) (rows []record) {
	for range 20 { // no tree is deeper
		p, ok := d.page(number)
		switch {
		case !ok:
			return nil
		case p.isInterior():
			number = p.children()[min(1, p.cells())]
			continue
		case p.isLeaf():
			for i := range p.cells() {
				if r, ok := p.record(i); ok {
					rows = append(rows, r)
				}
			}
		}
		return rows
	}
	return nil
}

// repair writes a copy of the file with a list of the tables, and returns its path. Close removes it.
func (d *database) repair(tables []recoveredTable) (path string, err error) {
	f, remove, err := memory.TempFile("repaired.sqlite")
	if err != nil {
		return "", err
	}
	d.remove = remove
	if _, err = d.file.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(f, d.file)
	}
	if err == nil {
		_, err = f.WriteAt(d.emptyPage(), 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return f.Name(), list(f.Name(), tables)
}

// emptyPage returns a first page with an empty list of tables.
// See https://www.sqlite.org/fileformat.html#the_database_header.
func (d *database) emptyPage() []byte {
	p := make([]byte, d.header.page)
	copy(p, magic)
	binary.BigEndian.PutUint16(p[16:], uint16(d.header.page)) // 1 is 65536
	if d.header.page == 1<<16 {
		binary.BigEndian.PutUint16(p[16:], 1)
	}
	copy(p[18:], []byte{1, 1, 0, 64, 32, 32})
	put := func(at int, v uint32) { binary.BigEndian.PutUint32(p[at:], v) }
	const changes, pages, cookie, format, encoding, validFor, version = 24, 28, 40, 44, 56, 92, 96
	put(changes, 1)
	put(pages, uint32(d.header.size/d.header.page))
	put(cookie, 1)
	put(format, 4)
	put(encoding, 1)
	put(validFor, 1)
	put(version, 3_040_000)
	p[headerSize] = leafPage
	binary.BigEndian.PutUint16(p[headerSize+5:], uint16(d.header.page))
	return p
}

// list writes the list of tables of a database.
func list(path string, tables []recoveredTable) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, pragma := range []string{"PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "PRAGMA writable_schema=ON"} {
		if err := tablefile.Exec(conn, pragma); err != nil {
			return err
		}
	}
	stmt, _, err := conn.PrepareTransient("INSERT INTO sqlite_master VALUES ('table', ?1, ?1, ?2, ?3)")
	if err != nil {
		return err
	}
	defer stmt.Finalize()
	for _, t := range tables {
		stmt.BindText(1, t.name)
		stmt.BindInt64(2, int64(t.root))
		stmt.BindText(3, t.sql)
		if _, err := stmt.Step(); err != nil {
			return err
		}
		stmt.Reset()
	}
	return nil
}
