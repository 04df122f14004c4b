package inputs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/trace"
)

// Unpacked data never exceeds the bound, and data beyond it is not written.
func TestBounded(t *testing.T) {
	var b bytes.Buffer
	w := &bounded{w: &b, left: 10}
	if n, err := w.Write(make([]byte, 10)); n != 10 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := w.Write([]byte{1}); n != 0 || err != errBomb || w.err != errBomb || b.Len() != 10 {
		t.Errorf("%d bytes, %v; %d in all", n, err, b.Len())
	}
}

// A truncated compressed file is read up to the cut. No temporary files remain, whether or not the
// input is usable.
func TestUnpack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	content := append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte("some of it is cut off "), 9000)...)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(content)
	z.Close()
	for _, cut := range []int{0, 100} {
		name := filepath.Join(t.TempDir(), "a.sqlite.gz")
		if err := os.WriteFile(name, packed.Bytes()[:packed.Len()-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		x := &Source{Input: Input{Name: name}}
		if err := x.recognize(true); err != nil || x.Format != nsysexport.Format || !x.unpacked {
			t.Fatalf("recognized as %v, %v", x.Format, err)
		}
		diags := &trace.Diags{}
		path, err := x.unpack(diags)
		if err != nil {
			t.Fatal(err)
		}
		have, _ := os.ReadFile(path)
		if !bytes.HasPrefix(content, have) || len(have) < len(content)/2 || (len(have) == len(content)) != (cut == 0) || len(diags.All()) != min(cut, 1) {
			t.Errorf("cut by %d: %d of %d bytes, %v", cut, len(have), len(content), diags.All())
		}
		x.close()
		if err := x.recognize(true); err != nil {
			t.Fatal(err)
		}
		if err := x.index(&format.Options{Diags: diags, Syms: trace.NewSymbols()}); err == nil {
			t.Error("a file that is not a database was indexed")
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}
