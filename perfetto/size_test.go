package perfetto

import (
	"fmt"
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// Values are written as integers only if they are whole numbers.
func TestSamplesComeBack(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	counter := b.Track(trace.Track{Kind: trace.KindCounter})
	want := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 300, 1<<49 - 1, 1 << 49, 1 << 62, 1e300, math.SmallestNonzeroFloat64}
	for i, v := range want {
		b.Sample(trace.Sample{Time: trace.Time(i), Track: counter, Value: v})
	}
	got := roundTrip(t, b.Finish())
	for i, v := range want {
		if have := got.Samples[i].Value; math.Float64bits(have) != math.Float64bits(v) {
			t.Errorf("%g became %g", v, have)
		}
	}
}

// The name of most events takes one byte per event, wherever it first occurs.
func TestFrequentNamesAreShort(t *testing.T) {
	size := func(frequent int) int {
		b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
		lane := b.Track(trace.Track{})
		for i := range 3000 {
			name := fmt.Sprintf("name %04d", i%1000)
			if i >= 1000 {
				name = fmt.Sprintf("name %04d", frequent)
			}
			b.Slice(trace.Slice{Time: trace.Time(2 * i), Dur: 1, Track: lane, Name: b.Intern(name)}, 0)
		}
		tr := b.Finish()
		data := encode(t, tr)
		got, err := readback.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, tr, got)
		return len(data)
	}
	if first, last := size(0), size(999); first != last {
		t.Errorf("%d bytes if the first name is that of most events, %d if the last is", first, last)
	}
}
