package chart

import (
	"strings"
	"testing"
)

// Equal factors have equal color depths in both directions, and noise has no color.
func TestHeatClasses(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  string
	}{
		{1, "h0"}, {1.029, "h0"}, {0.98, "h0"}, {1.03, "h1"}, {1 / 1.03, "l1"}, {1.06, "h1"}, {1.1, "h2"},
		{1.3, "h3"}, {1 / 1.3, "l3"}, {1.99, "h4"}, {2, "h5"}, {0.5, "l5"}, {0, "l5"}, {1000, "h5"},
	} {
		if got := heatClass(c.ratio); got != c.want {
			t.Errorf("%g is %s, want %s", c.ratio, got, c.want)
		}
	}
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "h0"}, {1, "h1"}, {19, "h1"}, {20, "h2"}, {99, "h5"}, {100, "h5"}} {
		if got := sequentialClass(c.v, 100); got != c.want {
			t.Errorf("%g of 100 is %s, want %s", c.v, got, c.want)
		}
	}
}

// Of very many columns, each still has a width.
func TestNarrowCells(t *testing.T) {
	const columns = 1000
	h := Heatmap{Rows: []string{"gemm"}, Columns: make([]string, columns), Cells: [][]HeatCell{make([]HeatCell, columns)}}
	d, err := h.Draw()
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []string{`width="0"`, `width="-`} {
		if n := strings.Count(string(d.Markup), width); n > 0 {
			t.Errorf("%d cells have %s", n, width)
		}
	}
}
