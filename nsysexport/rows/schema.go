package rows

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
)

// A tableSpec says which table is read and which of its columns.
type tableSpec struct {
	// names are what the table was called over time, the newest first; the first
	// that exists and has the needed columns is read.
	names   []string
	columns []column
	// quiet leaves damage to be reported by another scan of the table.
	quiet bool
	// when is which rows are read; nil is all.
	when *condition
	// within is which rows matter, by columns of the spec: others may be left out. nil is all.
	within *storage.Window
}

// A condition is one on a column. Of rows that are not wanted, nothing else is read.
type condition struct {
	column int
	wanted func(*cursor) bool
}

// A column is one that is read. Its place in [tableSpec.columns] is its number.
type column struct {
	name string
	// or is an older or newer name of it.
	or string
	// none is its value where the column is missing or NULL.
	none int64
	// need means that rows say nothing without it.
	need bool
	// detail means that [Options.Brief] leaves it out.
	detail bool
}

// versioned matches the suffix of a table that exists in several versions.
// Statements about it in other tools could not be verified; accepting it is cheap.
var versioned = regexp.MustCompile(`_V\d+$`)

// find returns the table of the store that is called name, "" if there is none.
func (s *Source) find(name string) string {
	tables := s.store.Tables()
	if slices.Contains(tables, name) {
		return name
	}
	for _, t := range tables {
		if strings.HasPrefix(t, name) && versioned.MatchString(t) && versioned.ReplaceAllString(t, "") == name {
			return t
		}
	}
	return ""
}

// A selection is how the columns of a table are read from one store.
type selection struct {
	table   string
	columns []string // that are read
	// at is where the columns of the spec are, by their number: in columns, or beyond them where
	// the table does not have them.
	at   []int
	none []int64 // by at: the value of rows that have none
	// missing is a needed column that the table does not have.
	missing string
}

// has reports whether a column of the spec is read.
func (s *selection) has(column int) bool { return s.at[column] < len(s.columns) }

// choose finds the table of a spec in the store. It returns nil if there is none.
func (s *Source) choose(c *connection, spec *tableSpec) (*selection, error) {
	var found *selection
	for _, name := range spec.names {
		table := s.find(name)
		if table == "" {
			continue
		}
		have, err := c.Conn.Columns(table)
		if err != nil {
			return nil, err
		}
		sel := selectColumns(table, spec.columns, have, s.Options.Brief)
		if sel.missing == "" {
			return sel, nil
		}
		found = cmp.Or(found, sel)
	}
	return found, nil
}

func selectColumns(table string, columns []column, have []storage.Column, brief bool) *selection {
	find := func(name string) int {
		return slices.IndexFunc(have, func(c storage.Column) bool { return c.Name == name })
	}
	sel := &selection{table: table, at: make([]int, len(columns))}
	var absent []int
	for i, c := range columns {
		found := find(c.name)
		if found < 0 {
			found = find(c.or)
		}
		if found < 0 && c.need && sel.missing == "" {
			sel.missing = c.name
		}
		if found < 0 || c.detail && brief {
			absent = append(absent, i)
			continue
		}
		sel.at[i] = len(sel.columns)
		sel.columns, sel.none = append(sel.columns, have[found].Name), append(sel.none, c.none)
	}
	for _, i := range absent {
		sel.at[i] = len(sel.none)
		sel.none = append(sel.none, columns[i].none)
	}
	return sel
}
