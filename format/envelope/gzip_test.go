package envelope

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func gzipped(t *testing.T, text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Zeros after the members of a gzip file are padding; other bytes are not.
func TestGzipPadding(t *testing.T) {
	one, two, none := gzipped(t, "one "), gzipped(t, "two "), gzipped(t, "")
	zeros := make([]byte, 3*HeadBytes+1)
	for _, test := range []struct {
		name  string
		parts [][]byte
		want  string
		ok    bool
	}{
		{"plain", [][]byte{one}, "one ", true},
		{"members", [][]byte{one, two}, "one two ", true},
		{"one zero", [][]byte{one, zeros[:1]}, "one ", true},
		{"many zeros", [][]byte{one, two, zeros}, "one two ", true},
		{"zeros between", [][]byte{one, zeros, two, zeros[:7]}, "one two ", true},
		{"empty members", append(slices.Repeat([][]byte{none}, 500), one), "one ", true},
		{"garbage", [][]byte{one, []byte("garbage and more of it")}, "one ", false},
		{"a byte of garbage", [][]byte{one, {7}}, "one ", false},
		{"garbage behind zeros", [][]byte{one, zeros, []byte("garbage and more of it")}, "one ", false},
		{"half a header", [][]byte{one, two[:4]}, "one ", false},
		{"half a name", [][]byte{one, {0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3, 'n'}}, "one ", false},
		{"half a member", [][]byte{one, two[:len(two)-6]}, "one two ", false},
		{"zeros for the end", [][]byte{one[:len(one)-8], zeros[:8]}, "one ", false},
	} {
		s, err := Open(test.name, bytes.NewReader(bytes.Join(test.parts, nil)))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		have, err := io.ReadAll(s)
		if string(have) != test.want || (err == nil) != test.ok {
			t.Errorf("%s: %q, error %v", test.name, have, err)
		}
	}
}
