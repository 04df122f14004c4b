package storage

import (
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// folderRows are the rows of a table, whose columns are read in step.
type folderRows struct {
	file    *tablefile.File
	columns []folderColumn
	read    int64
	left    int64
	lost    *Loss
}

// A folderColumn is a column being read, at the current row.
type folderColumn struct {
	kind   tablefile.Kind
	reader *tablefile.Reader
	batch  *tablefile.Batch
	at     int // row in the batch
}

// errShort is the error of a column that ends before the others do.
var errShort = errors.New("a column has fewer values than the table has rows")

// next moves to the next row.
func (c *folderColumn) next() (err error) {
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

// Within omits nothing.
func (r *folderRows) Within(*Window) {}

// Next moves to the next row. Damage in one column ends the table, as the row at which the column continues is
// unknown.
func (r *folderRows) Next() bool {
	if r.left == 0 || r.lost != nil {
		return false
	}
	for i := range r.columns {
		if err := r.columns[i].next(); err != nil {
			r.lost = &Loss{Rows: r.left, At: r.read, Err: err}
			return false
		}
	}
	r.read++
	r.left--
	return true
}

func (r *folderRows) Read() int64 { return r.read }

func (r *folderRows) Loss() *Loss { return r.lost }

func (r *folderRows) Null(i int) bool {
	c := &r.columns[i]
	return c.batch.Null(c.at)
}

func (r *folderRows) Kind(i int) Kind {
	switch c := &r.columns[i]; {
	case c.batch.Null(c.at):
		return Null
	case c.kind == tablefile.Integer:
		return Integer
	case c.kind == tablefile.Real:
		return Real
	}
	return Text
}

func (r *folderRows) Int(i int) int64 {
	switch c := &r.columns[i]; c.kind {
	case tablefile.Integer:
		return c.batch.Ints[c.at]
	case tablefile.Real:
		return int64(c.batch.Reals[c.at])
	}
	return 0
}

func (r *folderRows) Ints(none, into []int64) { ints(r, none, into) }

func (r *folderRows) Float(i int) float64 {
	switch c := &r.columns[i]; c.kind {
	case tablefile.Integer:
		return float64(c.batch.Ints[c.at])
	case tablefile.Real:
		return c.batch.Reals[c.at]
	}
	return 0
}

func (r *folderRows) Bytes(i int, buf []byte) []byte {
	c := &r.columns[i]
	if c.kind != tablefile.Bytes {
		return nil
	}
	return append(buf[:0], c.batch.Bytes(c.at)...)
}

// Close closes the file.
func (r *folderRows) Close() error {
	errs := order.EachRow(r.columns, func(f *folderColumn) error { return f.reader.Close() })
	return errors.Join(append(errs, r.file.Close())...)
}
