package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// Each bar begins where the one above it ends; the first begins at 0, and the last ends at the total.
func TestCascade(t *testing.T) {
	c := &Cascade{Unit: table.Number, From: CascadeRow{"before", 100}, To: CascadeRow{"after", 130},
		Rows: []CascadeRow{{"more", 50}, {"less", -30}, {"rest", 10}}}
	d, err := c.Draw()
	if err != nil {
		t.Fatal(err)
	}
	wide, _, _ := strings.Cut(string(d.Markup), `class="for-narrow"`)
	var bars [][2]float64
	for _, m := range regexp.MustCompile(`<rect class="area c\d+" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"`).FindAllStringSubmatch(wide, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		w, _ := strconv.ParseFloat(m[2], 64)
		bars = append(bars, [2]float64{x, x + w})
	}
	if len(bars) != 5 {
		t.Fatalf("bars %v", bars)
	}
	zero, scale := bars[0][0], (bars[0][1]-bars[0][0])/100
	for i, want := range [][2]float64{{0, 100}, {100, 150}, {120, 150}, {120, 130}, {0, 130}} {
		for side := range 2 {
			if off := bars[i][side] - zero - scale*want[side]; off > 0.3 || off < -0.3 {
				t.Errorf("bar %d is %v, want %v", i, bars[i], want)
			}
		}
	}
	if got := fmt.Sprint(d.Numbers.Rows); got != "[[before 100] [more +50] [less -30] [rest +10] [after 130]]" {
		t.Errorf("numbers %s", got)
	}
}
