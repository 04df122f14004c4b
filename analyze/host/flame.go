package host

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
)

// A Flame is the boxes of a flame graph: each as wide as the time in its frame and in those
// within, which stand below it. What threads waited is left out.
type Flame struct {
	Boxes []Box // each after the one around it
	Total int64 // ns
}

// A Box is a frame, or several that are too narrow to be drawn alone.
type Box struct {
	Name   string
	Did    Did
	Depth  int   // from 0, the outermost frames
	From   int64 // ns from the left
	Time   int64 // ns
	Merged int   // how many narrow frames it is; 0 is a frame
}

// Flame returns the flame graph of one of the times. Frames that are narrower than a share of
// all are merged with those beside them; together still narrower, they are left out. The
// widest frames come first.
func (s *Stacks) Flame(of Of, narrow float64) Flame {
	f := Flame{Total: s.totals[of][bottom]}
	d := drawer{s: s, totals: s.totals[of], least: int64(math.Ceil(narrow * float64(f.Total))), within: map[int32][]int32{}}
	for i := 1; i < len(s.tree.nodes); i++ {
		if n := &s.tree.nodes[i]; d.totals[i] > 0 && !n.isIdle() {
			if around := n.around; around == bottom || d.totals[around] >= d.least {
				d.within[around] = append(d.within[around], int32(i))
			}
		}
	}
	d.draw(bottom, 0, 0)
	f.Boxes = d.boxes
	return f
}

// A drawer makes the boxes of one flame graph.
type drawer struct {
	s      *Stacks
	totals []int64
	least  int64             // ns of a box
	within map[int32][]int32 // frames in a frame that is drawn
	boxes  []Box
}

// draw draws what is in a frame.
func (d *drawer) draw(around int32, depth int, from int64) {
	in := d.within[around]
	slices.SortFunc(in, func(a, b int32) int {
		return cmp.Or(cmp.Compare(d.totals[b], d.totals[a]), d.s.compare(a, b))
	})
	rest := Box{Depth: depth, Did: NotRecorded}
	for _, i := range in {
		time := d.totals[i]
		if time < d.least {
			rest.Merged++
			rest.Time = distribution.AddTimes(rest.Time, time)
			continue
		}
		d.boxes = append(d.boxes, Box{Name: d.s.name(i), Did: d.s.tree.nodes[i].did, Depth: depth, From: from, Time: time})
		d.draw(i, depth+1, from)
		from = distribution.AddTimes(from, time)
	}
	if rest.Merged > 0 && rest.Time >= d.least {
		rest.From = from
		d.boxes = append(d.boxes, rest)
	}
}
