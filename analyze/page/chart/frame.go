package chart

import "strconv"

// A frame is the part of a drawing that has axes, in pixels.
type frame struct{ left, top, width, height float64 }

func (f frame) right() float64  { return f.left + f.width }
func (f frame) bottom() float64 { return f.top + f.height }

// x and y return the pixel of a place on an axis; y runs upward.
func (f frame) x(at float64) float64 { return f.left + at*f.width }
func (f frame) y(at float64) float64 { return f.bottom() - at*f.height }

// inside is the frame in the pixels of its own view.
func (f frame) inside() frame { return frame{0, 0, f.width, f.height} }

// digit is how wide a digit is at most, in fonts that browsers take for this.
const digit = 7.8

// ticksIn is how many labels an axis that runs to the right has room for.
func (f frame) ticksIn(labelWidth float64) int { return max(2, int(f.width/labelWidth)) }

// vertical draws lines and labels for the ticks of an axis that runs to the right.
// Without labels it is one of several that share them. The script draws those of a clock
// anew where they zoom.
func (f frame) vertical(s *svg, axis scale, labels bool) {
	s.open("g", "class", "ticks", "data-labels", strconv.FormatBool(labels), "data-top", px(f.top), "data-bottom", px(f.bottom()))
	free := f.left - 40 // where the next label has room
	for _, t := range axis.ticks() {
		x := f.x(axis.at(t.value))
		s.line(gridClass(t), x, f.top, x, f.bottom())
		width := digit * float64(len(t.label))
		if x = min(x, s.width-width/2); labels && t.label != "" && x-width/2 > free {
			s.label(x, f.bottom()+16, "mid", t.label)
			free = x + width/2 + 8
		}
	}
	s.close("g")
}

// horizontal draws them for an axis that runs upward, without the faint ones where
// they would be too close to each other.
func (f frame) horizontal(s *svg, axis scale) {
	const closest = 6
	ticks := axis.ticks()
	for _, t := range ticks {
		if t.label == "" && float64(len(ticks))*closest > f.height {
			continue
		}
		y := f.y(axis.at(t.value))
		s.line(gridClass(t), f.left, y, f.right(), y)
		if t.label != "" {
			s.label(f.left-7, y+4, "end", t.label)
		}
	}
}

func gridClass(t tick) string {
	if t.label == "" {
		return "grid faint"
	}
	return "grid"
}

// Colors are numbers: 0 to Hues-1 are told apart by people with any color vision
// where they are few, and the grays behind them are for what is not meant to be looked
// at first.
const (
	Hues  = 10
	grays = 3
	Gray  = Hues + 1 // the middle one
)

// colorClass is the class of a color, which the style sheet gives it by theme.
func colorClass(color int) string { return "c" + strconv.Itoa(color) }
