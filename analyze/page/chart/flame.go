package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Flame is boxes that stand in each other, from the top down, each as wide as its value.
type Flame struct {
	Kinds []Part // what colors stand for
	Boxes []FlameBox
	Total float64 // the whole width
	Unit  func(value float64) string
}

// A FlameBox is one of them.
type FlameBox struct {
	Name  string // whole, under the pointer
	Label string // short, in the box
	Kind  int    // index into Flame.Kinds
	Depth int    // from 0
	From  float64
	Value float64
}

// flameHigh is the height of a box, with the line below it.
const flameHigh = 17

func (f *Flame) Draw() (Drawing, error) {
	seen := make([]bool, len(f.Kinds))
	for i := range f.Boxes {
		seen[f.Boxes[i].Kind] = true
	}
	d := Drawing{Markup: twice(f.svg), Wide: true, Numbers: f.numbers()}
	for i, k := range f.Kinds {
		if seen[i] {
			d.Legend = append(d.Legend, k.Entry())
		}
	}
	return d, nil
}

func (f *Flame) svg(width float64) template.HTML {
	deepest := 0
	for i := range f.Boxes {
		deepest = max(deepest, f.Boxes[i].Depth)
	}
	s := newSVG(width, float64(deepest+1)*flameHigh, "Flame graph: boxes of frames, each below the one around it, as wide as its time; the table below has the largest")
	for i := range f.Boxes {
		f.drawBox(s, &f.Boxes[i])
	}
	return s.finish()
}

// maxFrames is how many boxes are in the table of numbers.
const maxFrames = 50

// numbers returns the largest boxes.
func (f *Flame) numbers() *Numbers {
	boxes := slices.Clone(f.Boxes)
	slices.SortStableFunc(boxes, func(a, b FlameBox) int { return cmp.Compare(b.Value, a.Value) })
	n := &Numbers{Head: []string{"", "frames around it", "time", "share"}}
	for _, b := range boxes[:min(maxFrames, len(boxes))] {
		n.add(b.Name, strconv.Itoa(b.Depth), f.Unit(b.Value), words.InPercent(b.Value/f.Total)+" %")
	}
	return n
}

func (f *Flame) drawBox(s *svg, b *FlameBox) {
	scale := s.width / f.Total
	x, y, width := b.From*scale, float64(b.Depth)*flameHigh, b.Value*scale
	s.open("g", "class", "box "+colorClass(f.Kinds[b.Kind].Color))
	s.title(fmt.Sprintf("%s: %s, %s %%", b.Name, f.Unit(b.Value), words.InPercent(b.Value/f.Total)))
	s.empty("rect", "x", px(x), "y", px(y), "width", px(max(0.5, width-0.6)), "height", px(flameHigh-1))
	const least = 3 // letters that tell anything
	if room := int((width - 6) / letter); room >= least {
		s.label(x+3, y+flameHigh-5, "name", cutTo(b.Label, room))
	}
	s.close("g")
}

// cutTo cuts off the end of a text that is longer than so many letters.
func cutTo(text string, letters int) string {
	runes := []rune(table.Printable(text))
	if len(runes) <= letters {
		return string(runes)
	}
	return string(runes[:letters-1]) + "…"
}
