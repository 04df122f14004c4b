package memory

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/iotest"
)

// content returns compressible data of a given size.
func content(rng *rand.Rand, size int) []byte {
	data := make([]byte, 0, size)
	for len(data) < size {
		data = append(data, bytes.Repeat([]byte{byte(rng.IntN(256))}, min(1+rng.IntN(5000), size-len(data)))...)
	}
	return data
}

// Reading again gives the same data, from the beginning and from anywhere, however much was read
// the first time. No files remain.
func TestReadAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	t.Setenv("TMPDIR", t.TempDir())
	for _, size := range []int{0, 1, inMemory, inMemory + 1, 3*inMemory + 17} {
		data := content(rng, size)
		var s Spool
		first := s.Keep(io.NopCloser(iotest.OneByteReader(bytes.NewReader(data))))
		if size > 1 {
			first = s.Keep(io.NopCloser(bytes.NewReader(data)))
		}
		head := make([]byte, rng.IntN(size+1))
		if _, err := io.ReadFull(first, head); err != nil || !bytes.Equal(head, data[:len(head)]) {
			t.Fatalf("%d bytes: the first time: %v", size, err)
		}
		if err := first.Close(); err != nil || !s.Full() || s.Size() != int64(size) {
			t.Fatalf("%d bytes: %v, %d are kept", size, err, s.Size())
		}
		again, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			at := rng.IntN(size + 1)
			part := make([]byte, rng.IntN(min(size-at, 3*block)+1))
			if n, err := again.(io.ReaderAt).ReadAt(part, int64(at)); n != len(part) || err != nil || !bytes.Equal(part, data[at:at+n]) {
				t.Fatalf("%d bytes at %d: %d, %v", len(part), at, n, err)
			}
		}
		if all, err := io.ReadAll(again); err != nil || !bytes.Equal(all, data) {
			t.Errorf("%d bytes: read again: %d, %v", size, len(all), err)
		}
		if err := errors.Join(again.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A stream that ends with an error gives it on every reading.
func TestError(t *testing.T) {
	broken := errors.New("broken")
	var s Spool
	first := s.Keep(io.NopCloser(io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(broken))))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := s.Open()
	if all, err := io.ReadAll(again); string(all) != "abc" || err != broken {
		t.Errorf("%q, %v", all, err)
	}
}

// A failure to create the file is reported.
func TestSpoolNoRoom(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	var s Spool
	first := s.Keep(io.NopCloser(bytes.NewReader(make([]byte, 2*inMemory))))
	if err := first.Close(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
