package parquetdir

import (
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/columnar"
	"github.com/sgtrace/sgtrace/nsysexport/store"
)

// rows are the rows of a table. Its columns are read side by side.
type rows struct {
	file    *columnar.File
	columns []column
	read    int64
	left    int64
	lost    *store.Loss
}

// A column is one that is read, at the current row.
type column struct {
	kind   columnar.Kind
	reader *columnar.Reader
	batch  *columnar.Batch
	at     int // row of the batch
}

// errShort is the error of a column that ends before the others do.
var errShort = errors.New("a column has fewer values than the table has rows")

// next moves to the next row.
func (c *column) next() (err error) {
	if c.at++; c.batch != nil && c.at < c.batch.N {
		return nil
	}
	c.at = 0
	c.batch, err = c.reader.Next()
	if err == io.EOF {
		err = errShort
	}
	return err
}

// Within leaves nothing out.
func (r *rows) Within(*store.Window) {}

// Next moves to the next row. What is behind damage in one column is lost: there is no
// telling where its rows go on.
func (r *rows) Next() bool {
	if r.left == 0 || r.lost != nil {
		return false
	}
	for i := range r.columns {
		if err := r.columns[i].next(); err != nil {
			r.lost = &store.Loss{Rows: r.left, At: r.read, Err: err}
			return false
		}
	}
	r.read++
	r.left--
	return true
}

func (r *rows) Read() int64 { return r.read }

func (r *rows) Loss() *store.Loss { return r.lost }

func (r *rows) Null(i int) bool {
	c := &r.columns[i]
	return c.batch.Null(c.at)
}

func (r *rows) Kind(i int) store.Kind {
	switch c := &r.columns[i]; {
	case c.batch.Null(c.at):
		return store.Null
	case c.kind == columnar.Integer:
		return store.Integer
	case c.kind == columnar.Real:
		return store.Real
	}
	return store.Text
}

func (r *rows) Int(i int) int64 {
	switch c := &r.columns[i]; c.kind {
	case columnar.Integer:
		return c.batch.Ints[c.at]
	case columnar.Real:
		return int64(c.batch.Reals[c.at])
	}
	return 0
}

func (r *rows) Ints(none, into []int64) { store.Ints(r, none, into) }

func (r *rows) Float(i int) float64 {
	switch c := &r.columns[i]; c.kind {
	case columnar.Integer:
		return float64(c.batch.Ints[c.at])
	case columnar.Real:
		return c.batch.Reals[c.at]
	}
	return 0
}

func (r *rows) Bytes(i int, buf []byte) []byte {
	c := &r.columns[i]
	if c.kind != columnar.Bytes {
		return nil
	}
	return append(buf[:0], c.batch.Bytes(c.at)...)
}

// Close closes the file.
func (r *rows) Close() error {
	var errs []error
	for i := range r.columns {
		errs = append(errs, r.columns[i].reader.Close())
	}
	return errors.Join(append(errs, r.file.Close())...)
}
