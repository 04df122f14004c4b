package chart

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Boxes are where their values say, and their names are complete in the tooltip,
// whatever characters they contain.
func TestFlameBoxes(t *testing.T) {
	hostile := `</title><script>alert("1")</script>`
	f := Flame{
		Kinds: []Part{{"Python", 0}, {"kernel", 3}}, Total: 200, Unit: func(v float64) string { return fmt.Sprint(v, " ns") },
		Boxes: []FlameBox{{hostile, hostile, 0, 0, 0, 200}, {"forward", "forward", 0, 1, 0, 150}, {"gemm", "gemm", 1, 1, 150, 1}},
	}
	d, err := f.Draw()
	if err != nil {
		t.Fatal(err)
	}
	var svg struct {
		Boxes []struct {
			Title string `xml:"title"`
			Text  string `xml:"text"`
			Rect  struct {
				X     string `xml:"x,attr"`
				Width string `xml:"width,attr"`
			} `xml:"rect"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(f.svg(wideDrawing)), &svg); err != nil {
		t.Fatal(err)
	}
	if len(svg.Boxes) != 3 || len(d.Legend) != 2 {
		t.Fatalf("%d boxes in %d colors", len(svg.Boxes), len(d.Legend))
	}
	for i, want := range []string{hostile + ": 200 ns, 100 %", "forward: 150 ns, 75 %", "gemm: 1 ns, 0.5 %"} {
		if got := svg.Boxes[i].Title; got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
	if third := svg.Boxes[2]; third.Text != "" || third.Rect.X != "720" {
		t.Errorf("a narrow box has the text %q, at %s", third.Text, third.Rect.X)
	}
	if text := svg.Boxes[1].Text; text != "forward" {
		t.Errorf("a wide box has the text %q", text)
	}
	if width, err := strconv.ParseFloat(svg.Boxes[1].Rect.Width, 64); err != nil || width < 0.74*wideDrawing || width > 0.75*wideDrawing {
		t.Errorf("150 of 200 are %v wide, of %d", width, wideDrawing)
	}
	if strings.Contains(string(d.Markup), "<script") {
		t.Error("names are markup")
	}
}
