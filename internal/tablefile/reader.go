package tablefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A Batch is the values of N rows of a column, in the list of the column's kind. It is valid until the next
// one.
type Batch struct {
	N     int
	Nulls []bool // rows without a value; nil if all have one
	Ints  []int64
	Reals []float64
	// Codes are indexes of texts in Dict, if the file stores them that way; else nil.
	Codes  []int32
	Dict   *Dict
	data   []byte // other texts, concatenated
	bounds []int  // their bounds in data: N+1

	// Buffers of the lists with the same names, which may be nil.
	nulls []bool
	codes []int32
}

// Bytes returns the text of a row, valid until the next batch.
func (b *Batch) Bytes(row int) []byte {
	switch {
	case b.Codes == nil:
		return b.data[b.bounds[row]:b.bounds[row+1]]
	case b.Null(row):
		return nil
	}
	return b.Dict.Bytes(b.Codes[row])
}

// Null reports whether a row has no value.
func (b *Batch) Null(row int) bool { return b.Nulls != nil && b.Nulls[row] }

// A Dict is a list of distinct texts that rows refer to. Many batches may share it, and it stays valid.
type Dict struct {
	data   []byte
	bounds []uint32 // Len+1
}

// Len returns the number of texts.
func (d *Dict) Len() int { return max(0, len(d.bounds)-1) }

// Bytes returns the text at an index.
func (d *Dict) Bytes(code int32) []byte { return d.data[d.bounds[code]:d.bounds[code+1]] }

// batchSize is the largest number of values in a batch.
const batchSize = 2048

// batches are unused batches, by the kind of their column, as a batch only has the lists of its kind. A dataset
// has tens of thousands of small files, and a batch takes more memory than most of their columns.
var batches [Bytes + 1]sync.Pool

// A Reader reads one column. It is for one goroutine.
type Reader struct {
	of     *File
	column Column
	group  int   // to read next
	skip   int64 // rows to skip in that group
	cut    bool  // the current page begins in the middle of a page of the file
	pages  parquet.Pages
	page   parquet.Page
	values pageValues
	batch  *Batch             // nil once the reader is closed
	dict   parquet.Dictionary // of the page; nil if it has none
	texts  *Dict              // of dict
	ints   []int64            // of dict
	reals  []float64          // of dict
	boxed  []parquet.Value    // buffer for pages that are read value by value
}

// pageValues are the values of a page as the file stores them: rows without a value take no space. One of the
// lists is filled, or values come one by one.
type pageValues struct {
	rows, row int    // rows of the page, and the next one
	at        int    // index of the next value
	levels    []byte // 0 for a row without a value; nil if all have one
	int64s    []int64
	int32s    []int32 // numbers, or indexes in a dictionary
	bits      []byte  // booleans, lowest bit first
	doubles   []float64
	floats    []float32
	data      []byte
	offsets   []uint32 // of texts in data
	each      parquet.ValueReader
}

// Column reads the column at an index of Columns, from a row on. The caller closes the Reader.
func (f *File) Column(column int, row int64) *Reader {
	r := &Reader{of: f, column: f.columns[column]}
	if r.batch, _ = batches[r.column.Kind].Get().(*Batch); r.batch == nil {
		r.batch = &Batch{}
	}
	groups := f.content.RowGroups()
	for r.group < len(groups) && row >= groups[r.group].NumRows() {
		row -= groups[r.group].NumRows()
		r.group++
	}
	r.skip = row
	return r
}

// Next returns the next values, or io.EOF. After any other error, the rest is lost.
func (r *Reader) Next() (b *Batch, err error) {
	defer recovered(&err)
	for r.page == nil || r.values.row == r.values.rows {
		r.endPage()
		if err := r.nextPage(); err != nil {
			return nil, err
		}
		r.load()
	}
	n := min(batchSize, r.values.rows-r.values.row)
	if r.values.each != nil {
		return r.nextBoxed(n)
	}
	r.fill(n)
	return r.batch, nil
}

// nextPage moves to the next page that has values, in this row group or a later one.
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
				r.skip, r.cut = 0, true
			}
			r.group++
		}
		page, err := r.pages.ReadPage()
		switch {
		case err == nil:
			r.page = page
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
	if r.page != nil {
		parquet.Release(r.page)
		r.page, r.values, r.cut = nil, pageValues{}, false
	}
}

// load finds the values of the page.
func (r *Reader) load() {
	p := r.page
	r.values = pageValues{rows: int(p.NumValues()), levels: p.DefinitionLevels()}
	v := &r.values
	dict := p.Dictionary()
	if dict != nil {
		r.loadDict(dict)
	}
	data := p.Data()
	switch data.Kind() {
	case encoding.Int64:
		v.int64s = data.Int64()
	case encoding.Int32:
		v.int32s = data.Int32()
	case encoding.Double:
		v.doubles = data.Double()
	case encoding.Float:
		v.floats = data.Float()
	case encoding.ByteArray:
		v.data, v.offsets = data.ByteArray()
	case encoding.Boolean:
		if v.bits = data.Boolean(); r.cut { // in the middle of a byte
			v.each = p.Values()
		}
	default: // types that nobody writes
		v.each = p.Values()
	}
	r.dict = dict
}

// loadDict loads a dictionary, unless it is that of the page before.
func (r *Reader) loadDict(dict parquet.Dictionary) {
	if dict == r.dict {
		return
	}
	page := dict.Page()
	data := page.Data()
	switch data.Kind() {
	case encoding.Int64:
		r.ints = append([]int64(nil), data.Int64()...)
	case encoding.Int32:
		r.ints = r.ints[:0]
		for _, x := range data.Int32() {
			r.ints = append(r.ints, r.widened(x))
		}
	case encoding.Double:
		r.reals = append([]float64(nil), data.Double()...)
	case encoding.Float:
		r.reals = r.reals[:0]
		for _, x := range data.Float() {
			r.reals = append(r.reals, float64(x))
		}
	case encoding.ByteArray:
		text, bounds := data.ByteArray()
		r.texts = &Dict{append([]byte(nil), text...), append([]uint32(nil), bounds...)}
	}
}

// widened converts a 32-bit number.
func (r *Reader) widened(x int32) int64 {
	if r.column.unsigned {
		return int64(uint32(x))
	}
	return int64(x)
}

// reset begins a batch of n values.
func (r *Reader) reset(n int) *Batch {
	b := r.batch
	*b = Batch{N: n, Ints: b.Ints[:0], Reals: b.Reals[:0], data: b.data[:0], bounds: append(b.bounds[:0], 0), nulls: b.nulls[:0], codes: b.codes[:0]}
	return b
}

// fill makes a batch of the next n rows.
func (r *Reader) fill(n int) {
	b, v := r.reset(n), &r.values
	values := n
	if v.levels != nil {
		levels := v.levels[v.row : v.row+n]
		if nulls := bytes.Count(levels, []byte{0}); nulls > 0 {
			values -= nulls
			for _, level := range levels {
				b.nulls = append(b.nulls, level == 0)
			}
			b.Nulls = b.nulls
		}
	}
	from, to := v.at, v.at+values
	v.at, v.row = to, v.row+n
	switch r.column.Kind {
	case Integer:
		r.fillInts(b, from, to)
		b.Ints = spread(b.Ints, b.Nulls)
	case Real:
		r.fillReals(b, from, to)
		b.Reals = spread(b.Reals, b.Nulls)
	default:
		r.fillBytes(b, from, to)
	}
}

func (r *Reader) fillInts(b *Batch, from, to int) {
	v := &r.values
	switch {
	case r.dict != nil:
		for _, code := range v.int32s[from:to] {
			b.Ints = append(b.Ints, r.ints[code])
		}
	case v.int64s != nil:
		b.Ints = append(b.Ints, v.int64s[from:to]...)
	case v.bits != nil:
		for i := from; i < to; i++ {
			b.Ints = append(b.Ints, int64(v.bits[i/8]>>(i%8)&1))
		}
	default:
		for _, x := range v.int32s[from:to] {
			b.Ints = append(b.Ints, r.widened(x))
		}
	}
}

func (r *Reader) fillReals(b *Batch, from, to int) {
	v := &r.values
	switch {
	case r.dict != nil:
		for _, code := range v.int32s[from:to] {
			b.Reals = append(b.Reals, r.reals[code])
		}
	case v.doubles != nil:
		b.Reals = append(b.Reals, v.doubles[from:to]...)
	default:
		for _, x := range v.floats[from:to] {
			b.Reals = append(b.Reals, float64(x))
		}
	}
}

func (r *Reader) fillBytes(b *Batch, from, to int) {
	v := &r.values
	if r.dict != nil {
		b.codes = spread(append(b.codes, v.int32s[from:to]...), b.Nulls)
		b.Codes, b.Dict = b.codes, r.texts
		return
	}
	for row := range b.N {
		if !b.Null(row) {
			b.data = append(b.data, v.data[v.offsets[from]:v.offsets[from+1]]...)
			from++
		}
		b.bounds = append(b.bounds, len(b.data))
	}
}

// spread moves values to the rows that have one; the others get 0.
func spread[T any](values []T, nulls []bool) []T {
	if nulls == nil {
		return values
	}
	from := len(values)
	for len(values) < len(nulls) {
		var zero T
		values = append(values, zero)
	}
	for row := len(nulls) - 1; row >= 0; row-- {
		var x T
		if !nulls[row] {
			from--
			x = values[from]
		}
		values[row] = x
	}
	return values
}

// nextBoxed makes a batch of up to n rows from a page that is read value by value.
func (r *Reader) nextBoxed(n int) (*Batch, error) {
	if r.boxed == nil {
		r.boxed = make([]parquet.Value, batchSize)
	}
	got, err := r.values.each.ReadValues(r.boxed[:n])
	if got == 0 {
		if err == nil || err == io.EOF {
			err = fmt.Errorf("%w: a page has fewer values than it says", errFormat)
		}
		return nil, err
	}
	r.values.row += got
	b := r.reset(got)
	nulls := false
	for _, v := range r.boxed[:got] {
		nulls = nulls || v.IsNull()
		b.nulls = append(b.nulls, v.IsNull())
		if r.column.Kind == Integer {
			b.Ints = append(b.Ints, truth(v))
			continue
		}
		if !v.IsNull() {
			b.data = append(b.data, v.ByteArray()...)
		}
		b.bounds = append(b.bounds, len(b.data))
	}
	if nulls {
		b.Nulls = b.nulls
	}
	return b, nil
}

// truth converts a boolean to a number; 0 if there is no value.
func truth(v parquet.Value) int64 {
	if !v.IsNull() && v.Boolean() {
		return 1
	}
	return 0
}

// Close closes the reader and invalidates the current batch.
func (r *Reader) Close() error {
	r.endPage()
	if r.batch != nil {
		r.batch.Dict = nil
		batches[r.column.Kind].Put(r.batch)
		r.batch = nil
	}
	if r.pages == nil {
		return nil
	}
	err := r.pages.Close()
	r.pages = nil
	return err
}

// Overlapping returns a range of rows, [first, end), that includes all rows overlapping [from, to] in time,
// from the page statistics of the file; 0 is no bound. start and length are the indexes in Columns of the
// columns with the start and the length of each row. If the file has no page statistics, the range is all rows.
func (f *File) Overlapping(start, length int, from, to int64) (first, end int64) {
	first, end = f.Rows(), 0
	row := int64(0) // first one of the group
	for _, group := range f.content.RowGroups() {
		chunks := group.ColumnChunks()
		pages, err := pagesOf(chunks[f.columns[start].leaf], group.NumRows())
		if err != nil {
			return 0, f.Rows()
		}
		longest, err := longestOf(chunks[f.columns[length].leaf], group.NumRows())
		if err != nil {
			return 0, f.Rows()
		}
		for _, p := range pages {
			latest := p.most + longest
			if latest < p.most {
				latest = math.MaxInt64
			}
			if (from == 0 || latest >= from) && (to == 0 || p.least <= to) {
				first, end = min(first, row+p.first), max(end, row+p.end)
			}
		}
		row += group.NumRows()
	}
	return min(first, end), end
}

// pageBounds are the bounds of a page's values, and of its rows within its group.
type pageBounds struct{ least, most, first, end int64 }

// pagesOf returns the pages of a column in a group with this number of rows; a page without values has no
// bounds.
func pagesOf(c parquet.ColumnChunk, rows int64) (list []pageBounds, err error) {
	defer recovered(&err)
	values, err := c.ColumnIndex()
	if err != nil {
		return nil, err
	}
	places, err := c.OffsetIndex()
	if err != nil {
		return nil, err
	}
	for i := range values.NumPages() {
		p := pageBounds{math.MinInt64, math.MaxInt64, places.FirstRowIndex(i), rows}
		if !values.NullPage(i) {
			p.least, p.most = values.MinValue(i).Int64(), values.MaxValue(i).Int64()
		}
		if i+1 < places.NumPages() {
			p.end = places.FirstRowIndex(i + 1)
		}
		list = append(list, p)
	}
	return list, nil
}

// longestOf returns the largest value of a column in a group.
func longestOf(c parquet.ColumnChunk, rows int64) (longest int64, err error) {
	pages, err := pagesOf(c, rows)
	for _, p := range pages {
		longest = max(longest, p.most)
	}
	return longest, err
}
