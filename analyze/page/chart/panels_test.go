package chart

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// Of labels that would cover each other, the later ones are off until the script zooms in.
func TestPinsOfCloseMarks(t *testing.T) {
	const second = trace.Time(1e9)
	p := Panels{From: 0, To: 100 * second, Times: []trace.Time{0, 50 * second}, Panels: []Panel{{Title: "load", Unit: table.Number, Curves: []Curve{{Name: "all", Values: []float64{1, 2}}}}}}
	for i, at := range []trace.Time{10, 10, 11, 60} {
		p.Marks = append(p.Marks, Mark{First: at * second, Time: at * second, Last: at * second, Label: string(rune('1' + i))})
	}
	d, err := p.Draw()
	if err != nil {
		t.Fatal(err)
	}
	const drawings = 2 // wide and narrow
	if all, off := strings.Count(string(d.Markup), `class="mark pin`), strings.Count(string(d.Markup), `class="mark pin off"`); all != 4*drawings || off != 2*drawings {
		t.Errorf("%d labels, %d of them off, want %d and %d", all, off, 4*drawings, 2*drawings)
	}
}
