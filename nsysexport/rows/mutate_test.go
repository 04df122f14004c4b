package rows

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
)

const pageSize = 4096

// A subject is an export that is damaged in many ways.
type subject struct {
	data  []byte
	pages []owner // by number, from 1 on
}

// An owner is the table and the purpose of a page.
type owner struct {
	table string
	kind  string // internal, leaf, or overflow; "" for pages outside tables
	types string // of the table's columns
}

// newSubject determines the owner of each page from SQLite's dbstat.
func newSubject(t testing.TB, path string) *subject {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{data: data, pages: make([]owner, len(data)/pageSize+1)}
	conn := nsystest.Connect(t, path)
	err = sqlitex.ExecuteTransient(conn, "SELECT name, pageno, pagetype FROM dbstat", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		s.pages[stmt.ColumnInt(1)] = owner{stmt.ColumnText(0), stmt.ColumnText(2), ""}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.pages {
		err := sqlitex.ExecuteTransient(conn, "SELECT type FROM pragma_table_info(?)", &sqlitex.ExecOptions{Args: []any{s.pages[i].table},
			ResultFunc: func(stmt *sqlite.Stmt) error { s.pages[i].types += stmt.ColumnText(0) + " "; return nil }})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A mutant is a damaged copy.
type mutant struct {
	name    string
	data    []byte
	touched map[string]bool // tables with modified pages
	// flipped means that changed bytes may be part of a value, or that rows were replaced by
	// similar ones: such damage cannot be detected.
	flipped bool
}

// mutate returns the mutant for a seed.
func (s *subject) mutate(seed uint64) *mutant {
	rng := rand.New(rand.NewPCG(seed, 7))
	m := &mutant{data: bytes.Clone(s.data)}
	n := len(s.pages) - 1
	page := func(i int) []byte { return m.data[(i-1)*pageSize : i*pageSize] }
	any := 1 + rng.IntN(n)
	switch kind := seed % 12; kind {
	case 0:
		at := rng.IntN(len(m.data))
		m.name, m.data = fmt.Sprintf("cut at %d", at), m.data[:at]
	case 1:
		at := any * pageSize
		m.name, m.data = fmt.Sprintf("cut behind page %d", any), m.data[:at]
	case 2:
		m.name = fmt.Sprintf("zero page %d", any)
		clear(page(any))
	case 3:
		i := s.pick(rng, "internal")
		m.name = fmt.Sprintf("zero interior page %d", i)
		clear(page(i))
	case 4, 5, 6:
		m.flipped = true
		m.name = "flip"
		for range 1 + rng.IntN(4) {
			i, at := any, rng.IntN(pageSize)
			switch {
			case kind == 5: // page header
				at = rng.IntN(12)
			case kind == 6: // pointers to cells or children
				i = s.pick(rng, "internal")
				at = rng.IntN(40)
			}
			page(i)[at] ^= byte(1 << rng.IntN(8))
			m.name += fmt.Sprintf(" page %d at %d,", i, at)
		}
	case 7:
		other := 1 + rng.IntN(n)
		m.flipped = s.pages[any].types == s.pages[other].types
		m.name = fmt.Sprintf("swap pages %d and %d", any, other)
		a := bytes.Clone(page(any))
		copy(page(any), page(other))
		copy(page(other), a)
	case 8:
		other := 1 + rng.IntN(n)
		m.flipped = s.pages[any].types == s.pages[other].types
		m.name = fmt.Sprintf("page %d is page %d again", any, other)
		copy(page(any), page(other))
	case 9:
		m.name = fmt.Sprintf("drop page %d", any)
		m.data = append(m.data[:(any-1)*pageSize], m.data[any*pageSize:]...)
	case 10:
		m.name = fmt.Sprintf("repeat page %d", any)
		m.data = append(bytes.Clone(s.data[:any*pageSize]), s.data[(any-1)*pageSize:]...)
	case 11:
		at, from := rng.IntN(len(m.data)), rng.IntN(len(m.data))
		size := rng.IntN(3 * pageSize)
		m.name = fmt.Sprintf("splice %d bytes from %d to %d", size, from, at)
		m.flipped = true
		copy(m.data[at:min(at+size, len(m.data))], s.data[from:])
	}
	m.compare(s)
	return m
}

// pick returns a page of the given kind.
func (s *subject) pick(rng *rand.Rand, kind string) int {
	for {
		if i := 1 + rng.IntN(len(s.pages)-1); s.pages[i].kind == kind {
			return i
		}
	}
}

// compare finds the tables with modified pages.
func (m *mutant) compare(s *subject) {
	m.touched = map[string]bool{}
	for i := 1; i < len(s.pages); i++ {
		from, to := (i-1)*pageSize, i*pageSize
		if to > len(m.data) || !bytes.Equal(m.data[from:to], s.data[from:to]) {
			m.touched[s.pages[i].table] = true
			// Overflow pages hold only bytes of a long text.
			m.flipped = m.flipped || s.pages[i].kind == "overflow"
		}
	}
}
