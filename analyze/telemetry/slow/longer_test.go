package slow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Tokens that take longer, and later even longer, form two spells until the end. A spell ends where it is over.
func TestLongerStill(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []float64 // of 60 blocks each
		want   [][2]int  // spells: the first block, and the number of blocks
	}{
		{"once", []float64{1, 1.6}, [][2]int{{60, 60}}},
		{"longer still", []float64{1, 1.4, 2.1}, [][2]int{{60, 60}, {120, 60}}},
		{"over", []float64{1, 1.6, 1}, [][2]int{{60, 60}}},
		{"longer still, and over", []float64{1, 1.4, 2.1, 1}, [][2]int{{60, 60}, {120, 60}}},
		{"all the time", []float64{1.6}, [][2]int{{0, 60}}},
	} {
		r := rand.New(rand.NewPCG(7, 7))
		var list []block
		for i := range 60 * len(c.levels) {
			list = append(list, block{at: trace.Time(i), ratio: c.levels[i/60] * math.Exp(0.05*r.NormFloat64())})
		}
		var got [][2]int
		for _, part := range longerTokens(list) {
			got = append(got, [2]int{int(part[0].at), len(part)})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
