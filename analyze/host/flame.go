package host

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// A Flame is the boxes of a flame graph: each as wide as the time in its frame and in those within,
// which stand below it. Waits are left out.
type Flame struct {
	Boxes []Box // each after the one around it
	Total int64 // ns
}

// A Box is a frame, or several that are too narrow to be drawn alone.
type Box struct {
	Name     string
	Activity Activity
	Depth    int   // from 0, the outermost frames
	From     int64 // ns from the left
	Time     int64 // ns
	Merged   int   // how many narrow frames it stands for; 0 if it is one frame
}

// Flame returns the flame graph of one of the times. Frames that are narrower than a share of all are
// merged with their neighbors, and left out if they are still too narrow together. The widest frames
// come first.
func (s *Stacks) Flame(of TimeOf, narrow float64) Flame {
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
	within map[int32][]int32 // frames within a frame that is drawn
	boxes  []Box
}

// draw draws what is in a frame.
func (d *drawer) draw(around int32, depth int, from int64) {
	in := d.within[around]
	slices.SortFunc(in, func(a, b int32) int {
		return cmp.Or(cmp.Compare(d.totals[b], d.totals[a]), d.s.compare(a, b))
	})
	rest := Box{Depth: depth, Activity: NotRecorded}
	for _, i := range in {
		time := d.totals[i]
		if time < d.least {
			rest.Merged++
			rest.Time = distribution.AddTimes(rest.Time, time)
			continue
		}
		d.boxes = append(d.boxes, Box{Name: d.s.name(i), Activity: d.s.tree.nodes[i].did, Depth: depth, From: from, Time: time})
		d.draw(i, depth+1, from)
		from = distribution.AddTimes(from, time)
	}
	if rest.Merged > 0 && rest.Time >= d.least {
		rest.From = from
		d.boxes = append(d.boxes, rest)
	}
}

// TimeOf says whose time is measured.
type TimeOf uint8

const (
	CPU TimeOf = iota // threads
	GPU               // kernels, copies and fills that the stack launched
	numOf
)

// A node is a stack: a frame, and the stack that it is entered from.
type node struct {
	around int32
	name   trace.Sym
	did    Activity // what a thread does in the frame; OnDevice for work of devices
}

// isIdle reports whether a stack ends in the frame that stands for waiting.
func (n *node) isIdle() bool { return n.did.waits() && n.name == 0 }

// bottom is the stack without frames.
const bottom = 0

// maxDepth bounds stacks: Python's functions nest up to 1,000 deep, and those of real servers a tenth
// of that. Deeper frames count for the last one within the bound.
const maxDepth = 500

// A tree holds stacks, and the time in the innermost frame of each, ns.
type tree struct {
	nodes []node // each after the one around it
	depth []int32
	self  [numOf][]int64
	index map[node]int32
}

func newTree() *tree {
	t := &tree{nodes: []node{{around: -1}}, depth: []int32{0}, index: map[node]int32{}}
	for of := range t.self {
		t.self[of] = []int64{0}
	}
	return t
}

// enter returns the stack of a frame that is entered from around.
func (t *tree) enter(around int32, name trace.Sym, did Activity) int32 {
	key := node{around, name, did}
	at, ok := t.index[key]
	if !ok {
		at = int32(len(t.nodes))
		t.index[key] = at
		t.nodes = append(t.nodes, key)
		t.depth = append(t.depth, t.depth[around]+1)
		for of := range t.self {
			t.self[of] = append(t.self[of], 0)
		}
	}
	return at
}

// add adds time to a stack.
func (t *tree) add(of TimeOf, at int32, ns int64) {
	t.self[of][at] = distribution.AddTimes(t.self[of][at], ns)
}

// merge adds all of another tree.
func (t *tree) merge(o *tree) {
	to := make([]int32, len(o.nodes))
	for i := 1; i < len(o.nodes); i++ {
		n := &o.nodes[i]
		to[i] = t.enter(to[n.around], n.name, n.did)
		for of := range o.self {
			t.add(TimeOf(of), to[i], o.self[of][i])
		}
	}
}

// totals returns the time in every stack and in the stacks that continue it, without waits in these.
func (t *tree) totals(of TimeOf) []int64 {
	sums := make([]int64, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		sums[i] = distribution.AddTimes(sums[i], t.self[of][i])
		if n := &t.nodes[i]; i != bottom && !n.isIdle() {
			sums[n.around] = distribution.AddTimes(sums[n.around], sums[i])
		}
	}
	return sums
}
