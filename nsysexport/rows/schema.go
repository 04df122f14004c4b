package rows

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
)

// A tableSpec is a table to be read, and its columns.
type tableSpec struct {
	// names are the names of the table over time, newest first; the first one that exists and has the needed
	// columns is read.
	names   []string
	columns []column
	// quiet leaves damage to be reported by another scan of the table.
	quiet bool
	// when selects the rows to read; nil means all.
	when *condition
	// within tells which rows are relevant, by columns of the spec; others may be omitted. nil means all.
	within *storage.Window
}

// A condition is a condition on a column. Of rows that don't meet it, nothing else is read.
type condition struct {
	column int
	wanted func(*cursor) bool
}

// A column is a column to be read. Its number is its index in [tableSpec.columns].
type column struct {
	name string
	// or is an older or newer name of it.
	or string
	// none is its value if the column is missing or NULL.
	none int64
	// need means that rows are useless without it.
	need bool
	// detail means that [Options.Brief] omits it.
	detail bool
}

// versioned matches the suffix of a table that exists in several versions.
// Statements about it in other tools could not be verified; accepting it is cheap.
var versioned = regexp.MustCompile(`_V\d+$`)

// find returns the table of the store with a name, "" if there is none.
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
	columns []string // to read
	// at maps the spec's columns to indexes in columns, or to indexes after these if the table lacks them.
	at   []int
	none []int64 // by index in at: the value of a missing or NULL column
	// missing is a needed column that the table lacks.
	missing string
}

// has reports whether the table has a column of the spec.
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
