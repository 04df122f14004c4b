package trace

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestUvarint(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		want := r.Uint64() >> r.IntN(64)
		b := binary.AppendUvarint(nil, want)
		size := len(b)
		for range r.IntN(10) {
			b = append(b, byte(r.Uint32()))
		}
		if got, n := uvarint(b); got != want || n != size {
			t.Fatalf("% x: %d in %d bytes, want %d in %d", b, got, n, want, size)
		}
	}
}

// Next visits the same arguments as All, including extensions.
func TestNext(t *testing.T) {
	args := NewArgs()
	base := args.Put(ArgList(nil).String(7, "text").Float(300, 0.5).Int(1, math.MinInt64))
	middle := args.Put(ArgList(nil).Extend(base))
	id := args.Put(ArgList(nil).Int(1, -70_000).Uint(1<<20, math.MaxUint64).Array(3, ArgList(nil).Int(0, 5)).Extend(middle))
	var got, want []Arg
	for list := args.Raw(id); len(list) > 0; {
		var a Arg
		a, list = args.Next(list)
		got = append(got, a)
	}
	for a := range args.All(id) {
		want = append(want, a)
	}
	if len(want) != 6 || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
