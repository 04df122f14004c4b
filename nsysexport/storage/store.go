package storage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ErrForeign is wrapped by errors about files that are not Nsight Systems exports at all, damaged or not.
var ErrForeign = errors.New("not an Nsight Systems export")

// A Store is an open export. Its methods may be called from several goroutines at once.
type Store interface {
	// Tables returns the names of the tables, in the order of the store, without views and the like.
	Tables() []string
	// State returns the damage of the store as a whole.
	State() State
	// Connect returns a connection for one goroutine. The caller closes it.
	Connect() (Conn, error)
	// Changed reports whether the store was written to since it was opened.
	Changed() bool
	Close() error
}

// Open opens the database or the folder at a path.
func Open(path string) (Store, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		f, err := openFolder(path)
		if err != nil {
			return nil, err // a nil *folder in a Store would not be nil
		}
		return f, nil
	}
	d, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// A State is the damage of a store as a whole.
type State struct {
	// If the store is truncated, Have is its size in bytes, and Want the smallest correct size; 0 is unknown.
	Have, Want int64
	// TablesDamaged means that tables may be missing from the list.
	TablesDamaged bool
	// Recovered are tables that were missing from a damaged list, and were found by their shape. Lost is the number
	// of further tables whose shape is ambiguous.
	Recovered []string
	Lost      int
}

// Cut reports whether the end of the store is missing.
func (s State) Cut() bool { return s.Have < s.Want }

// A Conn reads one table at a time.
type Conn interface {
	// Columns returns the columns of a table, in the order of the store.
	Columns(table string) ([]Column, error)
	// Rows returns an upper bound of the number of rows of a table: exact in all that nsys writes, and too large if
	// rows were deleted later; -1 is unknown.
	Rows(table string) int64
	// Scan begins to read columns of a table, from its first row on.
	Scan(table string, columns []string) (Rows, error)
	// Last is like Scan, but begins at the last row.
	Last(table string, columns []string) (Rows, error)
	// Texts finds the texts of a table by their ids.
	Texts(table, id, text string) (Texts, error)
	Close() error
}

// A Column is a column of a table.
type Column struct {
	Name    string
	Kind    string // INTEGER, TEXT, REAL, or as declared
	NotNull bool   // each row has a value
	Key     bool   // part of the primary key
}

// Rows are the rows of a table being read, one of which is the current row. Columns are identified by their
// index in the list passed to [Conn.Scan].
type Rows interface {
	// Within declares, before the first row, that only the rows of a window are relevant. Others may be omitted;
	// they still count as read.
	Within(w *Window)
	// Next moves to the next row, and returns false if there is none.
	Next() bool
	Null(column int) bool
	Kind(column int) Kind
	Int(column int) int64 // 0 if it is not a number
	// ints stores Int of each column in into, or the column's value in none if it is NULL.
	Ints(none, into []int64)
	Float(column int) float64 // 0 if it is not a number
	// Bytes returns a text or blob, which may lie in buf; nil for NULL.
	Bytes(column int, buf []byte) []byte
	// Read returns the number of rows read so far.
	Read() int64
	// Loss returns the known loss, which may include rows still to come; nil if there is none.
	Loss() *Loss
	Close() error
}

// A Window is a window of time. A row is relevant if it begins by To and ends at From or later, or if its
// number lies in [Least, Most]. Columns are identified by their index in the list passed to [Conn.Scan].
type Window struct {
	Start, End  int
	From, To    int64
	Number      int // or NoColumn
	Least, Most int64
}

// NoColumn is the index of a missing column.
const NoColumn = -1

// ints implements [Rows.Ints] for rows without a faster way.
func ints(row interface {
	Int(column int) int64
	Null(column int) bool
}, none, into []int64) {
	for i := range into {
		if into[i] = row.Int(i); into[i] == 0 && row.Null(i) {
			into[i] = none[i]
		}
	}
}

// Kind is the type of a value.
type Kind uint8

const (
	Null Kind = iota
	Integer
	Real
	Text // or a blob
)

// Texts finds texts by their ids.
type Texts interface {
	// Find returns the text with an id, which may lie in buf and is valid until the next call; found is false if
	// there is none.
	Find(id int64, buf []byte) (text []byte, found bool, err error)
	Close() error
}

// A Loss is the unreadable part of a table.
type Loss struct {
	Rows   int64 // lost rows, at most
	Behind bool  // all rows after the last one that was read are lost, too
	At     int64 // rows read before the first loss
	Err    error // the error there
}

func (l *Loss) String() string {
	switch {
	case !l.Behind:
		return fmt.Sprintf("up to %d", l.Rows)
	case l.Rows == 0:
		return "those behind"
	}
	return fmt.Sprintf("up to %d and those behind", l.Rows)
}

// exportPrefixes are prefixes of table names that only exports have.
var exportPrefixes = []string{"CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_", "OSRT_", "ANALYSIS_DETAILS", "EXPORT_META_DATA",
	"META_DATA_EXPORT", "ThreadNames", "SCHED_EVENTS", "GPU_METRICS"}

// isExport reports whether these are tables of Nsight Systems. One is enough: exports can be limited to some
// tables, without the one of names.
func isExport(tables []string) bool {
	return slices.ContainsFunc(tables, func(table string) bool {
		return slices.ContainsFunc(exportPrefixes, func(prefix string) bool { return strings.HasPrefix(table, prefix) })
	})
}
