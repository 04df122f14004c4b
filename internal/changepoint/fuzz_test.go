package changepoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// FuzzFind searches arbitrary sequences: nothing panics or hangs, changes lie within the sequence
// and apart from each other, P is a probability, and the result is reproducible.
func FuzzFind(f *testing.F) {
	step := make([]byte, 0, 2000)
	for i := range 500 {
		step = append(step, byte(i*7), byte(i/250*90), 0, 0)
	}
	f.Add(step, uint8(4), 0.05)
	f.Add([]byte{}, uint8(1), 0.01)
	f.Add(make([]byte, 900), uint8(1), 1.0)
	f.Fuzz(func(t *testing.T, data []byte, width uint8, alpha float64) {
		values := numbers(data, int(width))
		clock := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("hangs with %d values", len(values))) })
		defer clock.Stop()
		o := Options{Alpha: min(max(alpha, 0), 1)}
		is := make([]bool, len(values))
		for i, v := range values {
			is[i] = v > values[0]
		}
		times := slices.Sorted(slices.Values(values))
		find := map[string]func() []Change{
			"levels":   func() []Change { return Levels(values, o) },
			"excesses": func() []Change { return Excesses(values, TailLimit(values), o) },
			"shares":   func() []Change { return Shares(is, o) },
			"rates": func() []Change {
				if len(times) == 0 {
					return nil
				}
				return Rates(times, times[0]-1, times[len(times)-1]+1, o)
			},
		}
		for name, search := range find {
			got := search()
			if again := search(); !slices.Equal(got, again) {
				t.Fatalf("%s: %v, then %v", name, got, again)
			}
			last := 0
			for i, c := range got {
				next := len(values)
				if i+1 < len(got) {
					next = got[i+1].At
				}
				if c.At <= last || c.From != last || c.To != next || c.To <= c.At || c.First > c.At || c.Last < c.At || c.First < 0 || c.Last >= len(values) || !(c.P >= 0 && c.P <= o.Alpha) {
					t.Fatalf("%s of %d: %+v behind %d", name, len(values), c, last)
				}
				last = c.At
			}
		}
		k := len(values) / 3
		if p, delta := Compare(values[:k], values[k:]); !(p >= 0 && p <= 1 && delta >= -1 && delta <= 1) {
			t.Fatalf("p %v, delta %v", p, delta)
		}
	})
}

// numbers decodes finite numbers of the given width in bytes, at most 1000, which are quick to
// search.
func numbers(data []byte, width int) (values []float64) {
	width = 1 + width%8
	for len(data) >= width && len(values) < 1000 {
		var b [8]byte
		copy(b[:], data[:width])
		v := float64(binary.LittleEndian.Uint64(b[:]))
		if width == 8 {
			v = math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
		}
		// Observations are times in ns, as floats.
		if !math.IsNaN(v) && math.Abs(v) < 1e19 {
			values = append(values, v)
		}
		data = data[width:]
	}
	return values
}
