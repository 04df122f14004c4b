package storage

import (
	"bytes"
	"encoding/binary"
	"math"
)

// A rowReader reads columns of rows on leaves. See https://www.sqlite.org/fileformat.html#record_format.
type rowReader struct {
	file     *pageFile
	columns  []columnType // of the table
	selected []int        // indexes of columns
	longest  uint64       // the longest row that SQLite reads
	layouts  [layouts]layout
	at       *layout // of the current row
	number   int64   // of the row
	body     []byte  // its values
	whole    []byte  // scratch space for rows with overflow pages
	all      []field // scratch space for lay
}

// A layout is where the values lie in rows with the same types. Most rows of a table have one of a few layouts.
type layout struct {
	head   []byte  // header of the row, without its size
	fields []field // by selected column
	size   int     // of all values
	need   int     // of values up to the last selected one
	odd    bool    // leave such rows to SQLite
}

// A field is the type of a value and its offset after the row's header.
type field struct {
	kind  uint64
	at    int
	size  int
	shift uint8 // of an integer: the excess bits in the eight bytes from at on
}

// layouts is the number of layouts that are kept.
const layouts = 256

// A columnType is the type of values that a column stores. Other types are left to SQLite.
type columnType uint8

const (
	someType columnType = iota
	integers
	reals // and integers for whole numbers
	bytesOfText
	rowNumbers // the row number itself, which the row does not repeat
)

// columnTypes map declared types, which are the only ones in exports.
var columnTypes = map[string]columnType{"INTEGER": integers, "REAL": reals, "TEXT": bytesOfText, "BLOB": bytesOfText}

// may reports whether a column stores values of a kind.
func (t columnType) may(kind uint64) bool {
	isNumber, isText := kind > kindNull && kind < kindReserved, kind >= kindBytes && kind <= math.MaxInt32
	switch {
	case kind == kindNull:
		return true
	case t == rowNumbers:
		return false
	case t == integers:
		return isNumber && kind != kindReal
	case t == reals:
		return isNumber
	case t == bytesOfText:
		return isText
	}
	return isNumber || isText
}

// The kinds of values: up to 6, integers of increasing size, then others.
const (
	kindNull     = 0
	kindReal     = 7
	kindZero     = 8
	kindOne      = 9
	kindReserved = 10
	kindBytes    = 12 // blobs of even kinds, texts of odd ones
)

// isInteger reports whether a value of a kind is an integer that takes bytes.
func isInteger(kind uint64) bool { return kind-1 < kindReal-1 }

// kindSizes are the sizes of values in bytes.
var kindSizes = [kindBytes]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}

// read reads the row in a cell of a valid leaf, and reports whether it is free of oddities. The buffer must
// extend beyond the leaf by slack bytes.
func (r *rowReader) read(leaf []byte, c *cell) bool {
	r.number = c.number
	row := leaf[c.from:c.to]
	headSize, n := varint(row)
	if n == 0 || headSize < uint64(n) || headSize > uint64(len(row)) || uint64(c.size) > r.longest {
		return false
	}
	if head := row[n:headSize]; r.at == nil || !bytes.Equal(r.at.head, head) {
		r.at = r.layoutOf(head)
	}
	if r.at.odd || r.at.size != c.size-int(headSize) {
		return false
	}
	if r.body = row[headSize:]; len(row) == c.size || r.at.need <= len(r.body) {
		return true
	}
	whole, ok := r.file.overflow(append(r.whole[:0], r.body...), binary.BigEndian.Uint32(leaf[c.to:]), c.size-len(row))
	r.whole = append(whole, make([]byte, slack)...)
	r.body = r.whole[:len(whole)]
	return ok
}

// layoutOf returns the layout of rows with a head.
func (r *rowReader) layoutOf(head []byte) *layout {
	hash, rest := uint64(len(head)), head
	for ; len(rest) >= 8; rest = rest[8:] {
		hash = (hash ^ binary.LittleEndian.Uint64(rest)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 32
	}
	for _, b := range rest {
		hash = hash*0x100000001b3 ^ uint64(b)
	}
	l := &r.layouts[(hash^hash>>29)%layouts]
	if !bytes.Equal(l.head, head) || l.fields == nil {
		r.lay(l, head)
	}
	return l
}

// lay determines the layout of rows with a header.
func (r *rowReader) lay(l *layout, head []byte) {
	all := r.all[:0]
	*l = layout{head: append(l.head[:0], head...), fields: append(l.fields[:0], make([]field, len(r.selected))...)}
	for rest := head; len(rest) > 0; {
		kind, n := varint(rest)
		if n == 0 || len(all) == len(r.columns) || !r.columns[len(all)].may(kind) {
			l.odd = true
			return
		}
		f := field{kind: kind, at: l.size}
		if f.size = int(kind-kindBytes) / 2; kind < kindBytes {
			f.size = kindSizes[kind]
		}
		if isInteger(kind) {
			f.shift = uint8(64 - 8*f.size)
		}
		all, l.size, rest = append(all, f), l.size+f.size, rest[n:]
	}
	r.all = all
	// Rows from before a column was added lack it.
	if l.odd = len(all) < len(r.columns); l.odd {
		return
	}
	for i, column := range r.selected {
		l.fields[i] = all[column]
		l.need = max(l.need, all[column].at+all[column].size)
	}
}

// value returns the field and the bytes of a value.
func (r *rowReader) value(column int) (f *field, b []byte) {
	f = &r.at.fields[column]
	return f, r.body[f.at : f.at+f.size]
}

func (r *rowReader) Null(column int) bool { return r.Kind(column) == Null }

func (r *rowReader) Kind(column int) Kind {
	switch kind := r.at.fields[column].kind; {
	case r.columns[r.selected[column]] == rowNumbers:
		return Integer
	case kind == kindNull || kind == kindReal && math.IsNaN(r.Float(column)):
		return Null
	case kind >= kindBytes:
		return Text
	case kind == kindReal || r.columns[r.selected[column]] == reals:
		return Real
	}
	return Integer
}

func (r *rowReader) Int(column int) int64 {
	f := &r.at.fields[column]
	if isInteger(f.kind) {
		return r.integer(f)
	}
	switch f.kind {
	case kindReal:
		return whole(r.Float(column))
	case kindOne:
		return 1
	case kindNull:
		if r.columns[r.selected[column]] == rowNumbers {
			return r.number
		}
	}
	return 0
}

// integer returns the value of a field that is an integer.
func (r *rowReader) integer(f *field) int64 {
	return int64(binary.BigEndian.Uint64(r.body[f.at:f.at+8])) >> f.shift
}

func (r *rowReader) Ints(none, into []int64) {
	fields := r.at.fields
	none, into = none[:len(fields)], into[:len(fields)]
	for i := range fields {
		switch f := &fields[i]; {
		case isInteger(f.kind):
			into[i] = r.integer(f)
		case f.kind == kindNull && r.columns[r.selected[i]] != rowNumbers, f.kind == kindReal && r.Null(i):
			into[i] = none[i]
		default:
			into[i] = r.Int(i)
		}
	}
}

// whole returns f as an integer, rounded towards zero and clamped to the range.
func whole(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f < -1<<63:
		return math.MinInt64
	case f >= 1<<63:
		return math.MaxInt64
	}
	return int64(f)
}

func (r *rowReader) Float(column int) float64 {
	f, b := r.value(column)
	if f.kind == kindReal {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return float64(r.Int(column))
}

func (r *rowReader) Bytes(column int, buf []byte) []byte {
	f, b := r.value(column)
	if f.kind < kindBytes {
		return buf[:0]
	}
	return append(buf[:0], b...)
}
