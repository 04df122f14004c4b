package columnar

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// A Batch is some values of a column, one for each of N rows. Of the three lists it has
// that of the column's kind. It is valid until the next one.
type Batch struct {
	N      int
	Nulls  []bool // of rows without a value; nil if all have one
	Ints   []int64
	Reals  []float64
	data   []byte // of texts, one behind the other
	bounds []int  // of texts, in data: N+1
}

// Bytes returns the text of a row, valid until the next batch.
func (b *Batch) Bytes(row int) []byte { return b.data[b.bounds[row]:b.bounds[row+1]] }

// Null reports whether a row has no value.
func (b *Batch) Null(row int) bool { return b.Nulls != nil && b.Nulls[row] }

// batchSize is how many values a batch has at most.
const batchSize = 2048

// A Reader reads one column. It is for one goroutine.
type Reader struct {
	of     *File
	column Column
	group  int   // that is read next
	skip   int64 // rows of that group
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    []parquet.Value
	batch  Batch
}

// Column begins to read a column, by its place in Columns, at a row. The caller closes the
// Reader.
func (f *File) Column(column int, row int64) *Reader {
	r := &Reader{of: f, column: f.columns[column], buf: make([]parquet.Value, batchSize)}
	groups := f.content.RowGroups()
	for r.group < len(groups) && row >= groups[r.group].NumRows() {
		row -= groups[r.group].NumRows()
		r.group++
	}
	r.skip = row
	return r
}

// Next returns the next values, or io.EOF. Another error says that all behind is lost.
func (r *Reader) Next() (b *Batch, err error) {
	defer recovered(&err)
	for {
		if r.values == nil {
			if err := r.nextPage(); err != nil {
				return nil, err
			}
		}
		n, err := r.values.ReadValues(r.buf)
		if n > 0 {
			return r.fill(r.buf[:n]), nil
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		if err == nil {
			return nil, fmt.Errorf("%w: a page has fewer values than it says", ErrFormat)
		}
		r.endPage()
	}
}

// nextPage moves to the next page that has values, of this group of rows or the next one.
func (r *Reader) nextPage() error {
	for {
		if r.pages == nil {
			groups := r.of.content.RowGroups()
			if r.group >= len(groups) {
				return io.EOF
			}
			r.pages = groups[r.group].ColumnChunks()[r.column.leaf].Pages()
			if r.skip > 0 {
				if err := r.pages.SeekToRow(r.skip); err != nil {
					return err
				}
				r.skip = 0
			}
			r.group++
		}
		page, err := r.pages.ReadPage()
		switch {
		case err == nil:
			r.page, r.values = page, page.Values()
			return nil
		case !errors.Is(err, io.EOF):
			return err
		}
		err = r.pages.Close()
		r.pages = nil
		if err != nil {
			return err
		}
	}
}

func (r *Reader) endPage() {
	parquet.Release(r.page)
	r.page, r.values = nil, nil
}

// fill makes a batch of values.
func (r *Reader) fill(values []parquet.Value) *Batch {
	b := &r.batch
	*b = Batch{N: len(values), Nulls: b.Nulls[:0], Ints: b.Ints[:0], Reals: b.Reals[:0], data: b.data[:0], bounds: append(b.bounds[:0], 0)}
	nulls := false
	for _, v := range values {
		null := v.IsNull()
		nulls = nulls || null
		b.Nulls = append(b.Nulls, null)
		switch r.column.Kind {
		case Integer:
			b.Ints = append(b.Ints, r.integer(v))
		case Real:
			b.Reals = append(b.Reals, real64(v))
		default:
			if !null {
				b.data = append(b.data, v.ByteArray()...)
			}
			b.bounds = append(b.bounds, len(b.data))
		}
	}
	if !nulls {
		b.Nulls = nil
	}
	return b
}

// integer returns a value as a number, 0 if it has none. Large unsigned numbers of 64 bits
// become negative ones.
func (r *Reader) integer(v parquet.Value) int64 {
	switch {
	case v.IsNull():
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case r.column.unsigned:
		return int64(uint32(v.Int32()))
	case v.Kind() == parquet.Int32:
		return int64(v.Int32())
	case v.Boolean():
		return 1
	}
	return 0
}

func real64(v parquet.Value) float64 {
	switch {
	case v.IsNull():
	case v.Kind() == parquet.Double:
		return v.Double()
	default:
		return float64(v.Float())
	}
	return 0
}

// Close ends the reading.
func (r *Reader) Close() error {
	if r.page != nil {
		r.endPage()
	}
	if r.pages == nil {
		return nil
	}
	err := r.pages.Close()
	r.pages = nil
	return err
}
