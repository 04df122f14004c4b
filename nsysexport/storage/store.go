package storage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ErrForeign is wrapped by errors about files that are no Nsight Systems export at all,
// damaged or not.
var ErrForeign = errors.New("not an Nsight Systems export")

// A Store is an open export. Its methods may be called from several goroutines at once.
type Store interface {
	// Tables returns the names of the tables, in the order of the store. What is not a
	// table of rows is left out.
	Tables() []string
	// State says what is wrong.
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
			return nil, err // a nil *folder is no nil Store
		}
		return f, nil
	}
	d, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// A State is what is wrong with a store as a whole.
type State struct {
	// The store is cut off: it should have Want bytes at least, and has Have; 0 is unknown.
	Have, Want int64
	// TablesDamaged tells that tables may be missing from the list.
	TablesDamaged bool
	// Recovered are tables that were missing from a damaged list, and were found by their
	// shape. Lost is how many more there are which nothing tells apart.
	Recovered []string
	Lost      int
}

// Cut reports whether the end of the store is missing.
func (s State) Cut() bool { return s.Have < s.Want }

// A Conn reads one table at a time.
type Conn interface {
	// Columns returns the columns of a table, in the order of the store.
	Columns(table string) ([]Column, error)
	// Rows returns how many rows a table has at most: the exact number in all that nsys
	// writes, and too many where rows were deleted later; -1 is unknown.
	Rows(table string) int64
	// Scan begins to read columns of a table, from its first row on.
	Scan(table string, columns []string) (Rows, error)
	// Last is like Scan from the last row on.
	Last(table string, columns []string) (Rows, error)
	// Texts finds the texts of a table by their ids.
	Texts(table, id, text string) (Texts, error)
	Close() error
}

// A Column is one of a table.
type Column struct {
	Name    string
	Kind    string // INTEGER, TEXT, REAL, or as it was declared
	NotNull bool   // each row has a value
	Key     bool   // part of the primary key
}

// Rows are the rows of a table that are read, of which one is the current one. Columns are
// called by their place in the list of [Conn.Scan].
type Rows interface {
	// Within tells, before the first row, that only those of a window matter. Others may be
	// left out; they count as read.
	Within(w *Window)
	// Next moves to the next row, and returns false if there is none.
	Next() bool
	Null(column int) bool
	Kind(column int) Kind
	Int(column int) int64 // 0 if it is no number
	// ints sets into to Int of each column, or to what none has for it where it is NULL.
	Ints(none, into []int64)
	Float(column int) float64 // 0 if it is no number
	// Bytes returns a text or blob, which may lie in buf; nil of NULL.
	Bytes(column int, buf []byte) []byte
	// Read returns how many rows were read so far.
	Read() int64
	// Loss returns what was lost so far, or will be by what has been met; nil is nothing.
	Loss() *Loss
	Close() error
}

// A Window is a window of time. A row matters to it if it begins by To and ends at From or
// later, or if its number lies in [Least, Most]. Columns are called by their place in the list
// of [Conn.Scan].
type Window struct {
	Start, End  int
	From, To    int64
	Number      int // NoColumn is none
	Least, Most int64
}

// NoColumn is the place of a column that is not there.
const NoColumn = -1

// ints is [Rows.Ints] for rows that have nothing better.
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
	// Find returns the text of an id, which may lie in buf and is valid until the next
	// call; found is false if there is none.
	Find(id int64, buf []byte) (text []byte, found bool, err error)
	Close() error
}

// A Loss is what could not be read of a table.
type Loss struct {
	Rows   int64 // that are lost, at most
	Behind bool  // all behind the last row that was read are lost, too
	At     int64 // rows read before the first loss
	Err    error // that was met there
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

// exportPrefixes are prefixes of names of tables that only exports have.
var exportPrefixes = []string{"CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_", "OSRT_", "ANALYSIS_DETAILS", "EXPORT_META_DATA",
	"META_DATA_EXPORT", "ThreadNames", "SCHED_EVENTS", "GPU_METRICS"}

// isExport reports whether these are tables of Nsight Systems. One is enough: exports can
// be bounded to some tables, without the one of names.
func isExport(tables []string) bool {
	return slices.ContainsFunc(tables, func(table string) bool {
		return slices.ContainsFunc(exportPrefixes, func(prefix string) bool { return strings.HasPrefix(table, prefix) })
	})
}
