package nsysexport

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
)

// A schema is which tables a file has. Names are as in the file.
type schema struct {
	tables []string // in the order of the file
}

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

// readSchema returns the tables of a database. Views and virtual tables are left
// out: they are code, and no export has them.
func readSchema(conn *sqlite.Conn) (schema, error) {
	var sch schema
	stmt, _, err := conn.PrepareTransient(
		"SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
	if err != nil {
		return sch, err
	}
	for {
		row, err := stmt.Step()
		if err != nil || !row {
			return sch, errors.Join(err, stmt.Finalize())
		}
		sch.tables = append(sch.tables, stmt.ColumnText(0))
	}
}

// isExport tells whether these are tables of Nsight Systems. Every export has the
// first one, and one of the others.
func (sch schema) isExport() bool {
	if !slices.Contains(sch.tables, "StringIds") {
		return false
	}
	return slices.ContainsFunc(sch.tables, func(t string) bool {
		for _, prefix := range []string{"CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_", "OSRT_", "ANALYSIS_DETAILS",
			"EXPORT_META_DATA", "META_DATA_EXPORT", "ThreadNames", "SCHED_EVENTS", "GPU_METRICS"} {
			if strings.HasPrefix(t, prefix) {
				return true
			}
		}
		return false
	})
}

// find returns the table of the file that is called name, "" if there is none.
func (sch schema) find(name string) string {
	if slices.Contains(sch.tables, name) {
		return name
	}
	for _, t := range sch.tables {
		if strings.HasPrefix(t, name) && versioned.MatchString(t) && versioned.ReplaceAllString(t, "") == name {
			return t
		}
	}
	return ""
}

// columnsOf returns the names of the columns of a table of the file.
func columnsOf(conn *sqlite.Conn, table string) ([]string, error) {
	stmt, _, err := conn.PrepareTransient("PRAGMA table_info(" + quote(table) + ")")
	if err != nil {
		return nil, err
	}
	var names []string
	for {
		row, err := stmt.Step()
		if err != nil || !row {
			return names, errors.Join(err, stmt.Finalize())
		}
		names = append(names, stmt.ColumnText(1))
	}
}

// quote makes an identifier of any text.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// A selection is how the columns of a table are read from one file.
type selection struct {
	table string
	sql   string
	// at is where the result has each column; -1 is nowhere.
	at []int32
	// missing is a needed column that the table does not have.
	missing string
}

// choose finds the table of a spec in the file. It returns nil if there is none.
func (s *Source) choose(conn *sqlite.Conn, spec *tableSpec) (*selection, error) {
	var found *selection
	for _, name := range spec.names {
		table := s.schema.find(name)
		if table == "" {
			continue
		}
		have, err := columnsOf(conn, table)
		if err != nil {
			return nil, err
		}
		sel := selectColumns(table, spec.columns, have, s.opt.Brief)
		if sel.missing == "" {
			return sel, nil
		}
		if found == nil {
			found = sel
		}
	}
	return found, nil
}

func selectColumns(table string, columns []column, have []string, brief bool) *selection {
	sel := &selection{table: table, at: make([]int32, len(columns))}
	var sql strings.Builder
	n := int32(0)
	for i, c := range columns {
		sel.at[i] = -1
		name := c.name
		if !slices.Contains(have, name) {
			name = c.or
		}
		switch {
		case name == "" || !slices.Contains(have, name):
			if c.need && sel.missing == "" {
				sel.missing = c.name
			}
		case !c.detail || !brief:
			sel.at[i] = n
			if n++; n > 1 {
				sql.WriteByte(',')
			}
			sql.WriteString(quote(name))
		}
	}
	if n == 0 {
		sql.WriteString("NULL")
	}
	sel.sql = "SELECT " + sql.String() + " FROM " + quote(table)
	return sel
}
