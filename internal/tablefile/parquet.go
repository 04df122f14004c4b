// Package tablefile opens files of tables: it reads and writes Parquet column by column, and opens SQLite files
// of other programs, which may be damaged, for reading only. It knows the formats, but not the content of the
// files.
//
// Parquet files have one leaf per column: this package does not support nested or repeated columns. Values are
// int64, float64, or bytes; the other types of Parquet (narrower and unsigned numbers, booleans) are converted
// to one of them.
//
//	f, err := tablefile.OpenParquet(path)
//	r := f.Column(i, 0)
//	for {
//		batch, err := r.Next() // io.EOF at the end
//	}
package tablefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ParquetSuffix is the suffix of the names of Parquet files.
const ParquetSuffix = ".parquet"

// magic is at the beginning and at the end of a file.
const magic = "PAR1"

// Kind is the type of the values of a column.
type Kind uint8

const (
	Integer Kind = iota
	Real
	Bytes // includes texts
)

// A Column is a column of a file.
type Column struct {
	Name     string
	Kind     Kind
	Optional bool // rows may lack a value
	leaf     int
	unsigned bool // a 32-bit number without a sign
}

// A File is an open Parquet file. Its columns may be read from several goroutines at once.
type File struct {
	file    *os.File // nil for a small file, which is read at once
	whole   []byte   // content of a small file
	content *parquet.File
	columns []Column
}

// errFormat is wrapped by errors about files that are not Parquet, or are damaged.
var errFormat = errors.New("not a whole Parquet file")

// OpenParquet opens a file. The caller closes it.
func OpenParquet(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file}
	if err := f.open(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// small is the size in bytes up to which a file is read at once: that takes less time than one read per column,
// and a dataset has tens of thousands of such files.
const small = 128 << 10

// buffers are unused buffers for small files, of small bytes each.
var buffers sync.Pool

func (f *File) open() (err error) {
	defer recovered(&err)
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	content := io.ReaderAt(f.file)
	if info.Size() <= small {
		if err := f.readWhole(int(info.Size())); err != nil {
			return err
		}
		content = bytes.NewReader(f.whole)
	}
	if err := checkEnds(content, info.Size()); err != nil {
		return err
	}
	f.content, err = parquet.OpenFile(content, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	for _, c := range f.content.Root().Columns() {
		if c.Leaf() && !c.Repeated() {
			f.columns = append(f.columns, Column{Name: c.Name(), Kind: kindOf(c.Type()), Optional: c.Optional(), leaf: c.Index(),
				unsigned: isUnsigned(c.Type())})
		}
	}
	return nil
}

// readWhole reads all of a small file, and closes it.
func (f *File) readWhole(size int) error {
	buffer, _ := buffers.Get().(*[small]byte)
	if buffer == nil {
		buffer = new([small]byte)
	}
	f.whole = buffer[:size]
	if _, err := io.ReadFull(f.file, f.whole); err != nil {
		return err
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// checkEnds checks both ends of a file: the length of the footer, which nothing else bounds, is stored before
// the final magic.
func checkEnds(f io.ReaderAt, size int64) error {
	var head, tail [8]byte
	if size < int64(len(head)+len(tail)) {
		return fmt.Errorf("%w: it has %d bytes", errFormat, size)
	}
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	switch {
	case string(head[:4]) != magic:
		return fmt.Errorf("%w: it does not begin as one", errFormat)
	case string(tail[4:]) != magic || int64(binary.LittleEndian.Uint32(tail[:])) > size-int64(len(tail)):
		return fmt.Errorf("%w: its end is missing or damaged", errFormat)
	}
	return nil
}

// recovered turns a panic of the library, which trusts damaged files, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", errFormat, r)
	}
}

func kindOf(t parquet.Type) Kind {
	switch t.Kind() {
	case parquet.Boolean, parquet.Int32, parquet.Int64:
		return Integer
	case parquet.Float, parquet.Double:
		return Real
	}
	return Bytes
}

func isUnsigned(t parquet.Type) bool {
	logical := t.LogicalType()
	if t.Kind() != parquet.Int32 || logical == nil {
		return false
	}
	n, ok := logical.Value.(*format.IntType)
	return ok && !n.IsSigned
}

// Columns returns the columns, in the order of the file.
func (f *File) Columns() []Column { return f.columns }

// Find returns the index in Columns of the column with a name, or -1.
func (f *File) Find(name string) int {
	return slices.IndexFunc(f.columns, func(c Column) bool { return c.Name == name })
}

// Rows returns the number of rows.
func (f *File) Rows() int64 { return f.content.NumRows() }

// Close closes the file. All readers must be closed.
func (f *File) Close() error {
	if f.whole != nil {
		buffers.Put((*[small]byte)(f.whole[:small]))
		f.whole = nil
	}
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// ParquetName returns the name of the table in a file, from its path: "NVTX_EVENTS" for "NVTX_EVENTS.parquet";
// ok is false for other files.
func ParquetName(file string) (name string, ok bool) { return strings.CutSuffix(file, ParquetSuffix) }

// About returns the file's metadata for a key.
func (f *File) About(key string) (value string, ok bool) { return f.content.Lookup(key) }
