package rows

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
	// damaged tells that the list of tables holds what does not belong there.
	damaged bool
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
	const kind, name, root, sql, id = 0, 1, 2, 3, 4
	var sch schema
	stmt, _, err := conn.PrepareTransient("SELECT type, name, rootpage, sql, rowid FROM sqlite_master")
	if err != nil {
		return sch, err
	}
	for last := int64(noRow); ; {
		row, err := stmt.Step()
		if err != nil || !row {
			return sch, errors.Join(err, stmt.Finalize())
		}
		// Where a page of the list is missing, others move to its place.
		if stmt.ColumnInt64(id) <= last {
			sch.damaged = true
			return sch, stmt.Finalize()
		}
		last = stmt.ColumnInt64(id)
		table, text := stmt.ColumnText(name), strings.ReplaceAll(stmt.ColumnText(sql), `""`, `"`)
		switch stmt.ColumnText(kind) {
		case "table", "index", "view", "trigger":
		default:
			sch.damaged = true
		}
		if stmt.ColumnText(kind) != "table" || stmt.ColumnInt64(root) <= 0 || strings.HasPrefix(table, "sqlite_") {
			continue
		}
		sch.damaged = sch.damaged || !strings.Contains(text, table)
		sch.tables = append(sch.tables, table)
	}
}

// isExport reports whether these are tables of Nsight Systems. One is enough: exports can
// be bounded to some tables, without the one of names.
func (sch schema) isExport() bool {
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

// A tableColumn is a column as the file has it.
type tableColumn struct {
	name    string
	kind    string // as it was declared: INTEGER, TEXT
	notNull bool   // each row has a value
	key     bool   // part of the primary key
}

// columnsOf returns the columns of a table of the file.
func columnsOf(conn *sqlite.Conn, table string) ([]tableColumn, error) {
	const name, kind, notNull, byDefault, key = 1, 2, 3, 4, 5
	stmt, _, err := conn.PrepareTransient("PRAGMA table_info(" + quote(table) + ")")
	if err != nil {
		return nil, err
	}
	var columns []tableColumn
	for {
		row, err := stmt.Step()
		if err != nil || !row {
			return columns, errors.Join(err, stmt.Finalize())
		}
		columns = append(columns, tableColumn{
			name: stmt.ColumnText(name), kind: stmt.ColumnText(kind), key: stmt.ColumnInt(key) != 0,
			// Rows from before a column was added have its default in SQLite only.
			notNull: stmt.ColumnInt(notNull) != 0 && stmt.ColumnIsNull(byDefault),
		})
	}
}

// quote makes an identifier of any text.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// A selection is how the columns of a table are read from one file.
type selection struct {
	table   string
	columns []tableColumn // of the table
	sql     string
	result  []resultColumn // by the number of the column in the spec
	// id is where it has the number of the row.
	id int32
	// missing is a needed column that the table does not have.
	missing string
}

// A resultColumn is where a result has a column of a spec.
type resultColumn struct {
	at   int32 // -1 is nowhere
	sure bool  // each row has a value
	none int64 // the value of rows that have none
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

func selectColumns(table string, columns []column, have []tableColumn, brief bool) *selection {
	find := func(name string) int {
		return slices.IndexFunc(have, func(c tableColumn) bool { return c.name == name })
	}
	sel := &selection{table: table, columns: have, result: make([]resultColumn, len(columns))}
	var sql strings.Builder
	n := int32(0)
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
			sel.result[i].at, sel.result[i].sure = n, have[found].notNull
			if n++; n > 1 {
				sql.WriteByte(',')
			}
			sql.WriteString(quote(have[found].name))
		}
	}
	if n > 0 {
		sql.WriteByte(',')
	}
	sel.id = n
	sel.sql = "SELECT " + sql.String() + "rowid FROM " + quote(table) + " WHERE rowid>?1"
	return sel
}
