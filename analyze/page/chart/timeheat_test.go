package chart

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// Adjacent cells of one color are one rectangle with their total width, and unknown cells have none.
func TestTimeHeat(t *testing.T) {
	h := &TimeHeat{From: 0, To: 1000, Steps: []float64{0.02, 0.1}, Unit: table.Share, What: "lateness", Groups: []HeatGroup{
		{Name: "group", From: 0, To: 1000, Rows: []HeatRow{{Name: "a", Values: []float64{0.05, 0.05, math.NaN(), -0.5}, Texts: []string{"1", "2", "", "4"}}}},
	}}
	d, err := h.Draw()
	if err != nil {
		t.Fatal(err)
	}
	wide, _, _ := strings.Cut(string(d.Markup), `class="for-narrow"`)
	if n := strings.Count(wide, `class="area `); n != 2 {
		t.Errorf("%d areas", n)
	}
	f := frame{left: letter + 16, width: wideDrawing - letter - 32}
	for class, want := range map[string]string{"h1": "M0 1h" + px(f.width/2) + "v17H0z", "l2": "M" + px(f.width*3/4) + " 1h" + px(f.width/4) + "v17H" + px(f.width*3/4) + "z"} {
		if !strings.Contains(wide, `<path class="area `+class+`" d="`+want+`"/>`) {
			t.Errorf("no area %s of %s in %s", class, want, wide)
		}
	}
	if got := d.Numbers.Rows[0]; got[2] != "-13.3 %" || got[3] != "5 %" {
		t.Errorf("numbers %q", got)
	}
}
