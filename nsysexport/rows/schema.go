package rows

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/store"
)

// A tableSpec says which table is read and which of its columns.
type tableSpec struct {
	// names are what the table was called over time, the newest first; the first
	// that exists and has the needed columns is read.
	names   []string
	columns []column
	// quiet leaves damage to be reported by another scan of the table.
	quiet bool
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
	columns []string       // that are read
	result  []resultColumn // by the number of the column in the spec
	// missing is a needed column that the table does not have.
	missing string
}

// A resultColumn is where a row has a column of a spec.
type resultColumn struct {
	at   int32 // -1 is nowhere
	sure bool  // each row has a value
	none int64 // the value of rows that have none
}

// choose finds the table of a spec in the store. It returns nil if there is none.
func (s *Source) choose(c *connection, spec *tableSpec) (*selection, error) {
	var found *selection
	for _, name := range spec.names {
		table := s.find(name)
		if table == "" {
			continue
		}
		have, err := c.Columns(table)
		if err != nil {
			return nil, err
		}
		sel := selectColumns(table, spec.columns, have, s.Options.Brief)
		if sel.missing == "" {
			return sel, nil
		}
		if found == nil {
			found = sel
		}
	}
	return found, nil
}

func selectColumns(table string, columns []column, have []store.Column, brief bool) *selection {
	find := func(name string) int {
		return slices.IndexFunc(have, func(c store.Column) bool { return c.Name == name })
	}
	sel := &selection{table: table, result: make([]resultColumn, len(columns))}
	for i, c := range columns {
		sel.result[i] = resultColumn{at: -1, none: c.none}
		found := find(c.name)
		if found < 0 {
			found = find(c.or)
		}
		switch {
		case found < 0:
			if c.need && sel.missing == "" {
				sel.missing = c.name
			}
		case !c.detail || !brief:
			sel.result[i].at, sel.result[i].sure = int32(len(sel.columns)), have[found].NotNull
			sel.columns = append(sel.columns, have[found].Name)
		}
	}
	return sel
}
