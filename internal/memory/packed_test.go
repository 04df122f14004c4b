package memory

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestUnpack(t *testing.T) {
	numbers := []int64{0, 1, -1, 63, -64, 64, 1 << 20, math.MaxInt64, math.MinInt64}
	chunks := [][]byte{{}}
	for i, n := range numbers {
		b := append([]byte(nil), byte(i))
		b = binary.AppendVarint(b, n)
		b = binary.AppendUvarint(b, uint64(n))
		if last := len(chunks) - 1; i%2 == 0 {
			chunks = append(chunks, b)
		} else {
			chunks[last] = append(chunks[last], b...)
		}
	}
	r := Unpack(chunks)
	for i, n := range numbers {
		if !r.More() || r.Byte() != byte(i) || r.Signed() != n || r.Unsigned() != uint64(n) {
			t.Fatalf("row %d is not what was packed", i)
		}
	}
	if r.More() {
		t.Error("there is more than was packed")
	}
	for i, c := range chunks {
		if c != nil {
			t.Errorf("chunk %d is still held", i)
		}
	}
}
