package tablefile

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// groupRows is how many rows a group has at most: what engines read as one piece.
const groupRows = 1 << 18

// compression is shared by all writers.
var compression = new(codec)

// buffered is how many rows are handed on at a time.
const buffered = 1024

// bloomBits is how many bits of a filter a value has: one in a hundred groups of rows without a
// value is read for it in vain.
const bloomBits = 10

// A Writer writes a file, row by row. T is a struct whose fields are columns, with tags as
// parquet-go reads them; those that do not say otherwise are compressed with zstd. Columns whose
// tag find is set have a Bloom filter, by which engines skip groups of rows that lack a value. It
// is for one goroutine.
type Writer[T any] struct {
	file *os.File
	to   *parquet.GenericWriter[T]
	rows []T
	n    int64
	err  error
}

// CreateParquet begins a file, with what is said about the whole of it by key.
func CreateParquet[T any](path string, about map[string]string) (*Writer[T], error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterOption{parquet.MaxRowsPerRowGroup(groupRows), parquet.Compression(compression), parquet.CreatedBy("sgtrace", "", "")}
	for key, value := range about {
		options = append(options, parquet.KeyValueMetadata(key, value))
	}
	if filters := bloomFilters(reflect.TypeFor[T]()); filters != nil {
		options = append(options, parquet.BloomFilters(filters...))
	}
	return &Writer[T]{file: file, to: parquet.NewGenericWriter[T](file, options...), rows: make([]T, 0, buffered)}, nil
}

func bloomFilters(row reflect.Type) (filters []parquet.BloomFilterColumn) {
	for _, f := range reflect.VisibleFields(row) {
		if _, ok := f.Tag.Lookup("find"); ok {
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			filters = append(filters, parquet.SplitBlockFilter(bloomBits, name))
		}
	}
	return filters
}

// Write adds a row. What it refers to may not change before Close. An error is returned by
// Close.
func (w *Writer[T]) Write(row T) {
	w.n++
	if w.rows = append(w.rows, row); len(w.rows) == cap(w.rows) {
		w.flush()
	}
}

func (w *Writer[T]) flush() {
	if w.err == nil {
		_, w.err = w.to.Write(w.rows)
	}
	clear(w.rows)
	w.rows = w.rows[:0]
}

// Rows returns how many rows were written.
func (w *Writer[T]) Rows() int64 { return w.n }

// Close ends the file, and returns once it is on the disk.
func (w *Writer[T]) Close() error {
	w.flush()
	if w.err == nil {
		w.err = w.to.Close()
	}
	if w.err == nil {
		w.err = w.file.Sync()
	}
	return errors.Join(w.err, w.file.Close())
}

// window is how far back a page is compared with itself, in bytes. Pages are shorter, but for the
// distinct values of a few columns.
const window = 1 << 20

// A codec compresses with zstd, as parquet-go does, in 1 MB instead of 16 MB for each core.
type codec struct {
	parquetzstd.Codec
	encoders sync.Pool
}

// Encode returns src compressed, in the place of dst if there is room.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	e, ok := c.encoders.Get().(*zstd.Encoder)
	if !ok {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, err
		}
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(src, dst[:0]), nil
}
