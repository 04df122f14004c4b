package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/sgtrace/sgtrace/internal/tablefile"
	"github.com/sgtrace/sgtrace/trace"
)

// rows are the rows of a file, of which some columns are read in parallel.
type rows struct {
	file  *tablefile.File // nil if there is no such file, and no rows
	path  string
	syms  *trace.Symbols
	cells []*cell
	first int64 // where reading begins
	left  int64
	width int // length of the current run
	err   error
}

// A cell is a column at the current row.
type cell struct {
	reader *tablefile.Reader // nil if the file has no such column: all rows are null
	batch  *tablefile.Batch
	at     int
	until  int // end of the rows from at that have the same value; see alike
	syms   *trace.SymbolCache
	known  []trace.Sym // by code in dict
	dict   *tablefile.Dict
}

// openRows opens a file of a capture; a missing file has no rows.
func (c *Capture) openRows(name string, syms *trace.Symbols) *rows {
	r := &rows{path: filepath.Join(c.Dir, name+tablefile.ParquetSuffix), syms: syms}
	r.file, r.err = tablefile.OpenParquet(r.path)
	if errors.Is(r.err, os.ErrNotExist) {
		r.err = nil
	}
	if r.file != nil {
		r.left = r.file.Rows()
	}
	return r
}

// overlapping skips pages of rows, before any column is read, that the file's statistics show to be outside
// a window; 0 is no bound. The remaining rows include all that overlap the window, and others near them.
func (r *rows) overlapping(from, to trace.Time) {
	if r.file == nil || from == 0 && to == 0 {
		return
	}
	start, length := r.file.Find("start"), r.file.Find("dur")
	if start < 0 || length < 0 {
		return
	}
	first, end := r.file.Overlapping(start, length, int64(from), int64(to))
	r.first, r.left = first, end-first
}

// column starts reading a column.
func (r *rows) column(name string) *cell {
	x := &cell{}
	if r.file == nil {
		return x
	}
	r.cells = append(r.cells, x)
	if i := r.file.Find(name); i >= 0 {
		x.reader = r.file.Column(i, r.first)
	}
	if r.syms != nil {
		x.syms = trace.NewSymbolCache(r.syms)
	}
	return x
}

// next moves to the next row.
func (r *rows) next() bool {
	if r.left == 0 || r.err != nil {
		return false
	}
	r.left--
	for _, x := range r.cells {
		if x.at++; x.batch != nil && x.at < x.batch.N || x.reader == nil {
			continue
		}
		if !r.fill(x) {
			return false
		}
		x.at = 0
	}
	return true
}

// fill reads the next batch of a column.
func (r *rows) fill(x *cell) bool {
	if x.batch, r.err = x.reader.Next(); r.err == io.EOF {
		r.err = io.ErrUnexpectedEOF
	}
	return r.err == nil
}

// run advances past the current run to the next rows that have equal values in the columns alike. It must
// not be mixed with next.
func (r *rows) run(alike []*cell) bool {
	if r.left == 0 || r.err != nil {
		return false
	}
	n := int(min(r.left, math.MaxInt32))
	for _, x := range r.cells {
		if x.reader == nil {
			continue
		}
		if x.at += r.width; x.batch == nil || x.at == x.batch.N {
			if !r.fill(x) {
				return false
			}
			x.at, x.until = 0, 0
		}
		n = min(n, x.batch.N-x.at)
	}
	for _, x := range alike {
		n = x.alike(n)
	}
	r.width = n
	r.left -= int64(n)
	return true
}

// alike returns how many of the next n rows have the same value as the first.
func (x *cell) alike(n int) int {
	if x.reader == nil {
		return n
	}
	if x.until <= x.at {
		b := x.batch
		same := b.N - x.at
		if b.Nulls != nil {
			same = equal(b.Nulls[x.at:])
		}
		switch {
		case b.Codes != nil:
			same = min(same, equal(b.Codes[x.at:]))
		case len(b.Ints) > 0:
			same = min(same, equal(b.Ints[x.at:]))
		default:
			same = 1
		}
		x.until = x.at + same
	}
	return min(n, x.until-x.at)
}

// equal returns how many leading values equal the first.
func equal[T comparable](values []T) int {
	for i, v := range values {
		if v != values[0] {
			return i
		}
	}
	return len(values)
}

// close ends reading. It returns the first error.
func (r *rows) close() error {
	if r.err != nil {
		r.err = fmt.Errorf("%s: %w", r.path, r.err)
	}
	if r.file == nil {
		return r.err
	}
	errs := []error{r.err}
	for _, x := range r.cells {
		if x.reader != nil {
			errs = append(errs, x.reader.Close())
		}
	}
	return errors.Join(append(errs, r.file.Close())...)
}

// null reports whether the row has no value.
func (x *cell) null() bool { return x.reader == nil || x.batch.Null(x.at) }

// int returns a number, 0 for null.
func (x *cell) int() int64 {
	if x.reader == nil {
		return 0
	}
	return x.batch.Ints[x.at]
}

// ints returns the numbers in the n rows of the current run; nil if the file has no such column.
func (x *cell) ints(n int) []int64 {
	if x.reader == nil {
		return nil
	}
	return x.batch.Ints[x.at : x.at+n]
}

// real returns a real number, 0 for null.
func (x *cell) real() float64 {
	if x.reader == nil {
		return 0
	}
	return x.batch.Reals[x.at]
}

// text returns text that is valid until the next row; "" for null.
func (x *cell) text() []byte {
	if x.reader == nil {
		return nil
	}
	return x.batch.Bytes(x.at)
}

// sym returns the symbol of a text. Each text of a dictionary is interned once.
func (x *cell) sym() trace.Sym {
	if x.null() {
		return 0
	}
	b := x.batch
	if b.Codes == nil {
		return x.syms.Intern(b.Bytes(x.at))
	}
	code := x.code()
	if x.known[code] == 0 {
		x.known[code] = x.syms.Intern(b.Dict.Bytes(code))
	}
	return x.known[code]
}

// code returns the index of a text in the dictionary, and resets known if the dictionary has changed.
func (x *cell) code() int32 {
	if x.dict != x.batch.Dict {
		x.dict = x.batch.Dict
		x.known = make([]trace.Sym, x.dict.Len())
	}
	return x.batch.Codes[x.at]
}
