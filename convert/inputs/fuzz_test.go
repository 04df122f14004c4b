package inputs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// maxUnpacked is how much of an input is checked, because bombs have no end.
const maxUnpacked = 4 << 20

// maxOpened is how many bytes a dozen readers of an input may allocate: one window each.
const maxOpened = 12 * 128 << 20

// opened returns everything that opening and reading an input gives.
func opened(in io.Reader) string {
	s, err := Input{Name: Stdin}.open(in, nil)
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	content, err := io.ReadAll(io.LimitReader(s, maxUnpacked))
	format := ""
	if s.Format != nil {
		format = s.Format.Name
	}
	return fmt.Sprintf("%s %s %v %v %x", s.Compression, format, s.Empty, err, content)
}

// FuzzOpen opens arbitrary data. The result does not depend on the pieces in which it arrives, and
// is the same when the data is compressed once more.
func FuzzOpen(f *testing.F) {
	config := simulator.DefaultConfig(1)
	config.Requests = 1
	dump, _ := testinput.Simulate(f, config)
	dump = dump[:2000]
	for _, data := range [][]byte{nil, []byte(" \n"), dump, []byte(`{"traceEvents": []}`), make([]byte, 600), []byte("SQLite format 3\x00"),
		[]byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"), []byte("\x1f\x8b"), []byte("\x28\xb5\x2f\xfd")} {
		f.Add(data, uint8(0))
		for n := range uint8(3) {
			packed, _ := testinput.Gzip(data, int(n)+1)
			f.Add(packed, n)
			packed, _ = testinput.Zstd(data, int(n)+1)
			f.Add(packed, n)
			f.Add(packed[:len(packed)*2/3], n)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, parts uint8) {
		testinput.BoundMemory(t, maxOpened, func() { checkOpen(t, data, parts) })
	})
}

// checkOpen checks invariants for any input. parts determines into how many pieces it is
// compressed, and how much of the result is kept.
func checkOpen(t *testing.T, data []byte, parts uint8) {
	want := opened(bytes.NewReader(data))
	for name, wrap := range map[string]func(io.Reader) io.Reader{"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "with the error": iotest.DataErrReader} {
		if got := opened(wrap(bytes.NewReader(data))); got != want {
			t.Fatalf("%s at a time: %.300s\nwant %.300s", name, got, want)
		}
	}
	s, err := Input{Name: Stdin}.open(bytes.NewReader(data), nil)
	if err != nil || s.Compression != "" {
		return // compressing twice is nothing new, and two layers are the limit
	}
	for _, pack := range []func([]byte, int) ([]byte, []int){testinput.Gzip, testinput.Zstd} {
		packed, _ := pack(data, 1+int(parts%5))
		again, err := Input{Name: Stdin}.open(bytes.NewReader(packed), nil)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(again)
		if err != nil || !bytes.Equal(content, data) || again.Format != s.Format || again.Empty != s.Empty {
			t.Fatalf("packed: %v, %d of %d bytes, format %+v, want %+v", err, len(content), len(data), again.Format, s.Format)
		}
		checkCut(t, data, packed[:len(packed)*int(parts)/256])
	}
}

// lastBits is the maximum number of bytes that the last 15 bits of a gzip file can encode: a
// decoder may need that many bits at a time, and a match of 258 bytes may take two.
const lastBits = 15 / 2 * 258

// checkCut checks that everything readable in a truncated compressed file is read: for gzip, what
// Go's own reader gives, except for the last bits.
func checkCut(t *testing.T, data, packed []byte) {
	t.Helper()
	var content []byte
	s, err := Input{Name: Stdin}.open(bytes.NewReader(packed), nil)
	if err == nil {
		content, err = io.ReadAll(s)
	}
	if !bytes.HasPrefix(data, content) && len(packed) > 4 {
		t.Fatalf("cut: %d bytes that are not the beginning of what was packed; %v", len(content), err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return // cut in the header, or not gzip
	}
	if whole, _ := io.ReadAll(z); len(content) < len(whole)-lastBits {
		t.Fatalf("cut: %d bytes, although %d can be read", len(content), len(whole))
	}
}

// All contents of a gzip file before the damage are used, not only whole decoder windows.
func TestCutGzip(t *testing.T) {
	config := simulator.DefaultConfig(1)
	config.Requests = 8
	dump, _ := testinput.Simulate(t, config)
	for _, members := range []int{1, 3} {
		packed, _ := testinput.Gzip(dump, members)
		for at := 1; at < len(packed); at += len(packed)/97 + 1 {
			checkCut(t, dump, packed[:at])
		}
	}
}
