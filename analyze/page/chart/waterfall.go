package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Waterfall shows consecutive steps in stacked lanes. It is not a [Body]: many waterfalls share a legend.
type Waterfall struct {
	Zero     trace.Time // zero of the axis
	From, To trace.Time // bounds of the axis
	Lanes    []Lane
}

// A Lane has the rows of one thread.
type Lane struct {
	Name string
	Rows []WaterfallRow
}

// A WaterfallRow is one stage, or several of the same name.
type WaterfallRow struct {
	Name  string
	Depth int // number of enclosing rows
	Color int
	Spans []Span
	Text  string // after the last span: the total duration
}

// A Span is an interval of time.
type Span struct{ From, To trace.Time }

// Rows returns the number of rows in all lanes.
func (w *Waterfall) Rows() int {
	return order.SumRows(w.Lanes, func(l *Lane) int { return len(l.Rows) })
}

// Sizes of waterfalls, in pixels.
const (
	laneHigh      = 20
	waterfallRow  = 15
	waterfallLeft = 250
	waterfallText = 74 // room to the right of the bars
)

// SVG draws the waterfall for desktops; narrow windows scroll.
func (w *Waterfall) SVG(label string) string {
	height := 8.0
	for _, lane := range w.Lanes {
		height += laneHigh + waterfallRow*float64(len(lane.Rows))
	}
	f := frame{left: waterfallLeft, top: 4, width: wideDrawing - waterfallLeft - waterfallText, height: height - 4}
	x := offsets{linear{float64(w.From - w.Zero), max(float64(w.To-w.Zero), float64(w.From-w.Zero)+1), table.Duration, 6}}
	s := newSVG(wideDrawing, f.bottom()+24, label)
	f.vertical(s, x, true)
	y := f.top
	for _, lane := range w.Lanes {
		s.label(4, y+14, "lane", table.Shorten([]string{lane.Name}, 60)[0])
		y += laneHigh
		for _, row := range lane.Rows {
			w.drawRow(s, &row, f, x, y)
			y += waterfallRow
		}
	}
	return string(s.finish())
}

// offsets is a scale of durations that may start below 0.
type offsets struct{ linear }

// drawRow draws the bars of a row. Those less than closest apart are joined.
func (w *Waterfall) drawRow(s *svg, row *WaterfallRow, f frame, x offsets, y float64) {
	const closest = 0.6
	indent := 10 + 9*float64(min(row.Depth, 6))
	s.label(indent, y+11, "", table.Shorten([]string{row.Name}, int((waterfallLeft-indent)/7.2))[0])
	var path strings.Builder
	from, to := -1.0, -1.0
	flush := func() {
		if to >= 0 {
			path.WriteString("M" + px(from) + " " + px(y+3) + "h" + px(max(0.8, to-from)) + "v9H" + px(from) + "z")
		}
	}
	for _, span := range row.Spans {
		a, b := f.x(x.at(float64(span.From-w.Zero))), f.x(x.at(float64(span.To-w.Zero)))
		if to >= 0 && a <= to+closest && a >= from {
			to = max(to, b)
			continue
		}
		flush()
		from, to = a, max(a, b)
	}
	flush()
	s.empty("path", "class", "bar "+colorClass(row.Color), "d", path.String())
	s.label(to+4, y+11, "dim", row.Text)
}

// Flame is a flame graph: nested boxes, from the top down, each as wide as its value.
type Flame struct {
	Kinds []Part // what the colors stand for
	Boxes []FlameBox
	Total float64 // value of the whole width
	Unit  func(value float64) string
}

// A FlameBox is one box of a [Flame].
type FlameBox struct {
	Name  string // in full, under the pointer
	Label string // short, in the box
	Kind  int    // index into Flame.Kinds
	Depth int    // from 0
	From  float64
	Value float64
}

// flameHigh is the height of a box, with the gap below it.
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

// maxFrames limits the boxes in the table of numbers.
const maxFrames = 50

// numbers returns the largest boxes as a table.
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
	const least = 3 // fewer letters say nothing
	if room := int((width - 6) / letter); room >= least {
		s.label(x+3, y+flameHigh-5, "name", cutTo(b.Label, room))
	}
	s.close("g")
}

// cutTo truncates a text to a number of letters.
func cutTo(text string, letters int) string {
	runes := []rune(table.Printable(text))
	if len(runes) <= letters {
		return string(runes)
	}
	return string(runes[:letters-1]) + "…"
}
