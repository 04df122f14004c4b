package tablefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// record has a column of every type.
type record struct {
	I64  int64    `parquet:"i64"`
	Opt  *int64   `parquet:"opt,optional"`
	I32  int32    `parquet:"i32"`
	U32  uint32   `parquet:"u32"`
	U64  uint64   `parquet:"u64"`
	Yes  bool     `parquet:"yes"`
	F64  float64  `parquet:"f64"`
	F32  *float32 `parquet:"f32,optional"`
	Text string   `parquet:"text,dict"`
	Raw  *string  `parquet:"raw,optional,snappy"`
	List []int64  `parquet:"list"`
	// Dictionaries of types other than texts, or with rows without a value.
	Code  int64   `parquet:"code,dict"`
	Small int32   `parquet:"small,dict"`
	Ratio float64 `parquet:"ratio,dict"`
	Maybe *string `parquet:"maybe,optional,dict"`
}

// makeRecords returns records, and their values as text by column.
func makeRecords(n int) (records []record, want map[string][]string) {
	want = map[string][]string{}
	add := func(column string, value any) { want[column] = append(want[column], fmt.Sprint(value)) }
	for i := range n {
		r := record{I64: int64(i) - 5, I32: int32(-i), U32: 1<<32 - 1 - uint32(i), U64: 1<<64 - 1 - uint64(i), Yes: i%3 == 0, F64: float64(i) / 4,
			Text: fmt.Sprint("name ", i%7), List: make([]int64, i%3)}
		opt, f32, raw := int64(i)<<40, float32(i)/2, strings.Repeat("x", i%50)
		add("opt", "-")
		add("f32", "-")
		add("raw", "-")
		if i%2 == 0 {
			r.Opt, want["opt"][i] = &opt, fmt.Sprint(opt)
		}
		if i%5 == 0 {
			r.F32, want["f32"][i] = &f32, fmt.Sprint(f32)
		}
		if i%4 != 0 {
			r.Raw, want["raw"][i] = &raw, raw
		}
		add("i64", r.I64)
		add("i32", r.I32)
		add("u32", r.U32)
		add("u64", int64(r.U64))
		add("yes", map[bool]int{true: 1}[r.Yes])
		add("f64", r.F64)
		add("text", r.Text)
		r.Code, r.Small, r.Ratio = int64(i%5)<<40, int32(i%3)-1, float64(i%4)/8
		add("code", r.Code)
		add("small", r.Small)
		add("ratio", r.Ratio)
		add("maybe", "-")
		if i%3 != 0 {
			maybe := fmt.Sprint("maybe ", i%2000)
			r.Maybe, want["maybe"][i] = &maybe, maybe
		}
		records = append(records, r)
	}
	return records, want
}

func write(t testing.TB, records []record, options ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := parquet.WriteFile(path, records, options...); err != nil {
		t.Fatal(err)
	}
	return path
}

// readColumn returns the values of a column as text, "-" for rows without one.
func readColumn(f *File, column int, from int64) (values []string, err error) {
	r := f.Column(column, from)
	defer r.Close()
	for {
		b, err := r.Next()
		if err != nil {
			return values, err
		}
		for i := range b.N {
			switch {
			case b.Null(i):
				values = append(values, "-")
			case f.Columns()[column].Kind == Integer:
				values = append(values, fmt.Sprint(b.Ints[i]))
			case f.Columns()[column].Kind == Real:
				values = append(values, fmt.Sprint(b.Reals[i]))
			default:
				values = append(values, string(b.Bytes(i)))
			}
		}
	}
}

// Columns have the values that were written, with any page and row group sizes, from any row on.
// Repeated fields are not columns.
func TestColumns(t *testing.T) {
	const n = 5000
	records, want := makeRecords(n)
	for _, options := range [][]parquet.WriterOption{
		nil,
		{parquet.MaxRowsPerRowGroup(777), parquet.PageBufferSize(2000)},
		{parquet.DataPageVersion(1), parquet.Compression(&parquet.Zstd)},
		{parquet.DictionaryMaxBytes(2000), parquet.PageBufferSize(3000)}, // pages without a dictionary follow pages with one
	} {
		f, err := OpenParquet(write(t, records, options...))
		if err != nil {
			t.Fatal(err)
		}
		if f.Rows() != n || len(f.Columns()) != len(want) || f.Find("list") >= 0 || f.Find("none") >= 0 {
			t.Fatalf("%d rows of %v", f.Rows(), f.Columns())
		}
		for i, c := range f.Columns() {
			for _, from := range []int64{0, 776, 777, n - 1, n} {
				have, err := readColumn(f, i, from)
				if err != io.EOF || !slices.Equal(have, want[c.Name][from:]) {
					t.Errorf("%s from %d: %d values, want %d (%v)", c.Name, from, len(have), n-from, err)
				}
			}
			if c.Optional != strings.Contains("opt f32 raw maybe", c.Name) {
				t.Errorf("%+v", c)
			}
		}
		f.Close()
	}
}

// A Writer's file has the rows it was given and the metadata of the file.
func TestWriter(t *testing.T) {
	records, want := makeRecords(3 * buffered / 2)
	path := filepath.Join(t.TempDir(), "t.parquet")
	w, err := CreateParquet[record](path, map[string]string{"about": "it"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		w.Write(r)
	}
	if err := w.Close(); err != nil || w.Rows() != int64(len(records)) {
		t.Fatalf("%d rows of %d: %v", w.Rows(), len(records), err)
	}
	f, err := OpenParquet(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if about, ok := f.About("about"); !ok || about != "it" {
		t.Errorf("about %q", about)
	}
	for i, c := range f.Columns() {
		if have, err := readColumn(f, i, 0); err != io.EOF || !slices.Equal(have, want[c.Name]) {
			t.Errorf("%s: %d values, want %d (%v)", c.Name, len(have), len(records), err)
		}
	}
}

// For a column with the tag find, a reader can tell that a value is absent from the file.
func TestFind(t *testing.T) {
	type row struct {
		ID   string `parquet:"id" find:"yes"`
		Name string `parquet:"name"`
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	w, err := CreateParquet[row](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	for i := range n {
		w.Write(row{fmt.Sprint("id ", i), "x"})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	chunks := file.RowGroups()[0].ColumnChunks()
	if chunks[1].BloomFilter() != nil {
		t.Error("name has a filter")
	}
	falsely := 0
	for i := range 2 * n {
		has, err := chunks[0].BloomFilter().Check(parquet.ValueOf(fmt.Sprint("id ", i)))
		if err != nil || i < n && !has {
			t.Fatalf("id %d: %v, %v", i, has, err)
		}
		if has && i >= n {
			falsely++
		}
	}
	if falsely > n/20 {
		t.Errorf("%d of %d are found that are not there", falsely, n)
	}
}

// readAll reads a file as far as possible. It must end without a panic.
func readAll(t *testing.T, path string) (values int, err error) {
	f, err := OpenParquet(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for i := range f.Columns() {
		have, more := readColumn(f, i, 0)
		if values += len(have); more != io.EOF {
			err = errors.Join(err, more)
		}
		if len(have) > 1_000_000 {
			t.Fatalf("%d values", len(have))
		}
	}
	return values, err
}

// A file that is not Parquet gives an error that says so.
func TestNoParquet(t *testing.T) {
	whole, err := os.ReadFile(write(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty": nil, "short": []byte("PAR1PAR1"), "text": bytes.Repeat([]byte("hello "), 100),
		"cut": whole[:len(whole)-3], "long footer": append([]byte("PAR1aaaaaaaaaaaaaaaa"), "\xff\xff\xff\xffPAR1"...),
		"no footer": append([]byte("PAR1aaaaaaaaaaaaaaaa"), "\x08\x00\x00\x00PAR1"...),
	} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenParquet(path); !errors.Is(err, errFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzOpen changes bytes of a file: reading ends, with an error or with values.
func FuzzOpen(f *testing.F) {
	records, _ := makeRecords(300)
	whole, err := os.ReadFile(write(f, records, parquet.MaxRowsPerRowGroup(100)))
	if err != nil {
		f.Fatal(err)
	}
	for _, at := range []uint16{4, 20, 400, 2000, uint16(len(whole) - 200), uint16(len(whole) - 9)} {
		f.Add(at, []byte{0xff})
		f.Add(at, []byte{0, 0, 0x7f, 1})
	}
	f.Fuzz(func(t *testing.T, at uint16, patch []byte) {
		data := bytes.Clone(whole)
		copy(data[int(at)%len(data):], patch)
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := readAll(t, path); err == nil && n > 10*len(records)*len(records[0].Text) {
			t.Errorf("%d values", n)
		}
	})
}

// A reader reuses the batch of a closed reader, without lists of a different kind.
func TestBatchesOfClosedReaders(t *testing.T) {
	records, _ := makeRecords(10)
	f, err := OpenParquet(write(t, records))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		for i, c := range f.Columns() {
			r := f.Column(i, 0)
			b, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind != Integer && b.Ints != nil || c.Kind != Real && b.Reals != nil || c.Kind != Bytes && b.Codes != nil {
				t.Errorf("%s has lists of other kinds", c.Name)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
