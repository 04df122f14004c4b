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

// groupRows is the largest number of rows in a row group, which engines read as one piece.
const groupRows = 1 << 18

// compression is shared by all writers.
var compression = new(codec)

// buffered is the number of rows that are handed on at a time.
const buffered = 1024

// bloomBits is the number of bits per value in a Bloom filter: of the row groups without a value, one in a
// hundred is read in vain.
const bloomBits = 10

// A Writer writes a file row by row. The fields of the struct T are the columns, with tags for parquet-go;
// columns are compressed with zstd unless their tags say otherwise. Columns whose tag find is set have a Bloom
// filter, by which engines skip row groups without a value. A Writer is for one goroutine.
type Writer[T any] struct {
	file *os.File
	to   *parquet.GenericWriter[T]
	rows []T
	n    int64
	err  error
}

// CreateParquet creates a file with the given metadata.
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

// Write adds a row. Data that the row refers to may not change before Close, which returns any error.
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

// Rows returns the number of rows written.
func (w *Writer[T]) Rows() int64 { return w.n }

// Close finishes the file, and returns once it is on the disk.
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

// window is the compression window in bytes. Pages are shorter, except for the distinct values of a few
// columns.
const window = 1 << 20

// A codec compresses with zstd, like parquet-go, but takes 1 MB per core and not 16 MB.
type codec struct {
	parquetzstd.Codec
	encoders sync.Pool
}

// Encode returns src compressed, in dst if there is room.
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
