package perfetto

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func TestVarints(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 10_000 {
		v := r.Uint64() >> r.IntN(64)
		want := binary.AppendUvarint([]byte{1}, v)
		if got := appendVarint([]byte{1}, v); !bytes.Equal(got, want) || sizeOf(v) != len(want)-1 {
			t.Fatalf("%d is written as % x, want % x; its size is %d", v, got[1:], want[1:], sizeOf(v))
		}
	}
}
