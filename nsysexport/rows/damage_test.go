package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
)

// damaged writes a changed copy of a file and returns its path.
func damaged(t testing.TB, path string, change func([]byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "damaged.sqlite")
	if err := os.WriteFile(out, change(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

// When a file cannot be opened, the error says what to do.
func TestRefused(t *testing.T) {
	good := nsystest.Database(t, large(2000))
	beside := func(suffix string, data []byte) func(t *testing.T) string {
		return func(t *testing.T) string {
			path := damaged(t, good, func(b []byte) []byte { return b })
			if err := os.WriteFile(path+suffix, data, 0o644); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	change := func(f func([]byte) []byte) func(t *testing.T) string {
		return func(t *testing.T) string { return damaged(t, good, f) }
	}
	for _, c := range []struct {
		name string
		path func(t *testing.T) string
		want string // part of the error; "" if it succeeds
	}{
		{"empty", change(func([]byte) []byte { return nil }), "0 bytes"},
		{"interrupted", change(func(b []byte) []byte { clear(b[:4096]); return b[:8192] }), "interrupted"},
		{"header cut", change(func(b []byte) []byte { return b[:60] }), "cut off after 60 bytes"},
		{"page size", change(func(b []byte) []byte { b[16], b[17] = 3, 7; return b }), ""}, // all exports have the same page size
		{"page size and tables", change(func(b []byte) []byte { b[16] = 3; clear(b[100:4096]); return b[:8192] }), "header"},
		{"encoding", change(func(b []byte) []byte { b[59] = 9; return b }), ""}, // everything can still be read
		{"no tables left", change(func(b []byte) []byte { clear(b[100:4096]); return b[:8192] }), "list of tables"},
		{"text", change(func([]byte) []byte { return bytes.Repeat([]byte("hello "), 500) }), "not an Nsight Systems export"},
		{"foreign", func(t *testing.T) string { return nsystest.Database(t, "CREATE TABLE t (x)") }, "not an Nsight Systems export"},
		{"of Ascend", func(t *testing.T) string {
			return nsystest.Database(t, "CREATE TABLE TASK (x); CREATE TABLE CANN_API (x)")
		}, "its trace_view.json is, which export_type=Text writes: not an Nsight Systems export"},
		{"missing", func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") }, "no such file"},
		{"folder", func(t *testing.T) string { return t.TempDir() }, "not an Nsight Systems export"},
		{"wal", beside("-wal", make([]byte, 4096)), "wal_checkpoint"},
		{"empty wal", beside("-wal", nil), ""},
		{"journal of the target of a link", func(t *testing.T) string {
			path := beside("-journal", []byte("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7 and more than a header of 28 bytes"))(t)
			link := filepath.Join(t.TempDir(), "link.sqlite")
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			return link
		}, "sqlite-journal"},
		{"journal", beside("-journal", append([]byte("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"), make([]byte, 1000)...)), "-journal"},
		{"finished journal", beside("-journal", make([]byte, 512)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(c.path(t), Options{})
			switch {
			case c.want == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if foreign := strings.Contains(c.want, "not an"); err != nil && errors.Is(err, storage.ErrForeign) != foreign {
				t.Errorf("foreign: %v", err)
			}
		})
	}
}

// A damaged page costs only the rows on it, which are counted.
func TestDamagedPage(t *testing.T) {
	good := nsystest.Database(t, large(5000))
	whole, _, _ := read(t, good)
	// The page is found by a value in its middle row.
	var start [8]byte
	binary.BigEndian.PutUint64(start[:], 2000000000+3000*9137)
	var calls int
	path := damaged(t, good, func(b []byte) []byte {
		at := bytes.Index(b, start[4:])
		if at < 0 {
			t.Fatal("the row is not in the file")
		}
		for i := at &^ 4095; i < at&^4095+16; i++ {
			b[i] = 0xff
		}
		return b
	})
	e, _, diags := read(t, path)
	if calls = len(e.API); calls != len(whole.API) {
		t.Errorf("%d calls of %d: damage of another table", calls, len(whole.API))
	}
	lost := 5000 - len(e.Kernels)
	if lost < 20 || lost > 80 {
		t.Errorf("%d kernels are lost, want those of one page", lost)
	}
	if len(diags) != 2 {
		t.Fatalf("diagnostics: %v", diags)
	}
	d := diags[1]
	if d.Severity != trace.DataLoss || d.Code != "nsys-table-damaged" || d.Pos.Line < 2900 || d.Pos.Line > 3001 ||
		!strings.HasSuffix(d.Pos.File, ":CUPTI_ACTIVITY_KIND_KERNEL") || !strings.Contains(d.Msg, fmt.Sprintf("%d rows were read, up to %d are lost", len(e.Kernels), lost)) {
		t.Errorf("diagnostic: %v", d)
	}
}

// A truncated file is read up to the cut.
func TestTruncated(t *testing.T) {
	good := nsystest.Database(t, large(5000))
	whole, _, _ := read(t, good)
	all := len(whole.Kernels) + len(whole.API) + len(whole.Ranges)
	for _, percent := range []int{99, 60, 40} {
		path := damaged(t, good, func(b []byte) []byte { return b[:len(b)*percent/100] })
		e, _, diags := read(t, path)
		n := len(e.Kernels) + len(e.API) + len(e.Ranges)
		if n < all*percent/100/4 || n >= all {
			t.Errorf("%d%% of the file gave %d of %d rows", percent, n, all)
		}
		found := false
		for _, d := range diags {
			found = found || d.Code == "nsys-truncated" && d.Severity == trace.DataLoss
		}
		if !found {
			t.Errorf("%d%%: %v", percent, diags)
		}
	}
}

// Reading leaves no files beside the export, and does not modify it. Its path may contain any
// characters.
func TestNothingIsWritten(t *testing.T) {
	data, err := os.ReadFile(nsystest.Database(t, large(100)+"PRAGMA journal_mode=wal;"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a b?c=d&e#f%20g")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "node%41 ü?.sqlite")
	if err := os.WriteFile(path, data, 0o444); err != nil {
		t.Fatal(err)
	}
	if e, _, _ := read(t, path); len(e.Kernels) != 100 {
		t.Errorf("%d kernels", len(e.Kernels))
	}
	files, _ := os.ReadDir(dir)
	after, _ := os.ReadFile(path)
	if len(files) != 1 || !bytes.Equal(after, data) {
		t.Errorf("files %v", files)
	}
}

// A file that grows while it is read is incomplete.
func TestWrittenMeanwhile(t *testing.T) {
	path := nsystest.Database(t, large(100))
	diags := &trace.Diags{}
	s, err := Open(path, Options{Diags: diags})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	s.Close()
	if !slices.ContainsFunc(diags.All(), func(d trace.Diag) bool { return d.Code == "nsys-changed" && d.Severity == trace.DataLoss }) {
		t.Errorf("diagnostics %v", diags.All())
	}
}

// Exports modified by other tools are read, too: version tables, unknown tables and columns,
// deleted rows, a host without a name.
func TestOtherTools(t *testing.T) {
	e, _, diags := read(t, nsystest.Database(t, large(1000)+`
		INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 619, 'UNKNOWN');
		INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
		DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start % 3 = 0;
		ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN kernel_name TEXT;
		ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME TO CUPTI_ACTIVITY_KIND_RUNTIME_V2;
		CREATE INDEX _nsysai_kernel_start ON CUPTI_ACTIVITY_KIND_KERNEL (start);
		CREATE TABLE _nsysai_meta (x);`))
	if len(e.Kernels) < 600 || len(e.Kernels) > 700 || len(e.API) != 1000 || e.Meta.Host != "" || len(diags) != 0 {
		t.Errorf("%d kernels, %d calls, host %q, diagnostics %v", len(e.Kernels), len(e.API), e.Meta.Host, diags)
	}
}

// FuzzRead changes bytes of a small export, or truncates it. Intact pages are read as before; for
// damaged ones, a loss is reported, or only values are wrong.
func FuzzRead(f *testing.F) {
	path := nsystest.Database(f, nsystest.EveryTable(60))
	s, whole := newSubject(f, path), readOutcome(path)
	if whole.err != nil {
		f.Fatal(whole.err)
	}
	f.Add(uint32(4096), []byte{0xff, 0xff}, uint32(0))
	f.Add(uint32(100), []byte{5}, uint32(0))
	f.Add(uint32(8192), bytes.Repeat([]byte{0}, 64), uint32(5000))
	f.Add(uint32(20), []byte{0x20}, uint32(1))
	f.Add(uint32(0), []byte{}, uint32(50_000))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, cut uint32) {
		m := &mutant{name: fmt.Sprintf("%d bytes at %d, the last %d are missing", len(patch), at, cut), data: bytes.Clone(s.data)}
		copy(m.data[int(at)%len(m.data):], patch)
		m.flipped = !bytes.Equal(m.data, s.data)
		m.data = m.data[:len(m.data)-int(cut)%len(m.data)]
		m.compare(s)
		var c tally
		c.judge(t, m, whole, filepath.Join(t.TempDir(), "fuzz.sqlite"))
	})
}
