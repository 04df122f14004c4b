package operators

import (
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A replay counts the kernels of graphs for the operators that launched them at capture.
type replay struct {
	*graphs.Replays
	selected selection
	classes  map[capturedBy]*capturedClasses
}

// A capturedBy identifies what a capture is counted for.
type capturedBy struct {
	capture *graphs.Capture
	rank    int32
}

// capturedClasses are the classes of the frames of a capture.
type capturedClasses struct {
	class  []int32   // by frame; none if it is not selected
	nested []nesting // by frame, like those of a thread
}

// has reports whether some work belongs to a replay whose capture is known.
func (r *replay) has(e *profile.Event) bool {
	if r == nil {
		return false
	}
	l := r.Of(e)
	return l != nil && l.Capture != nil
}

// classesOf returns the classes of the frames of a capture.
func (c *collector) classesOf(capture *graphs.Capture, rank int32) *capturedClasses {
	return order.Memo(c.replay.classes, capturedBy{capture, rank}, func() *capturedClasses { return c.classify(capture, rank) })
}

// classify finds the classes of the frames of a capture.
func (c *collector) classify(capture *graphs.Capture, rank int32) *capturedClasses {
	n := len(capture.Frames)
	of := &capturedClasses{make([]int32, n), make([]nesting, n)}
	for i := range capture.Frames {
		f := &capture.Frames[i]
		of.class[i] = none
		name, ok := c.replay.selected(&profile.Frame{Event: profile.Event{Name: f.Name, Rank: rank}, Kind: f.Kind})
		if !ok {
			continue
		}
		of.class[i] = c.classOf(class{rank, name, capture.ShapesOf(int32(i)), f.Types, f.Mask, f.Values})
		for at := f.Around; at != none; at = capture.Frames[at].Around {
			if of.class[at] != none {
				of.nested[i] |= c.likeness(of.class[i], of.class[at])
			}
		}
	}
	for len(c.sums) < len(c.threads.classes) {
		c.sums = append(c.sums, sum{})
	}
	return of
}

// likeness returns in what an operator is like one around it.
func (c *collector) likeness(of, around int32) nesting {
	switch {
	case of == around:
		return inClass | inName
	case c.threads.classes[of].name == c.threads.classes[around].name:
		return inName
	}
	return 0
}

// countReplays counts the kernels of all replays whose captures are known.
func (c *collector) countReplays() {
	if c.replay == nil {
		return
	}
	for i := range c.replay.Launches {
		if l := &c.replay.Launches[i]; l.Capture != nil {
			c.countReplay(l)
			if c.roofs != nil {
				c.countCaptured(l)
			}
		}
	}
}

// countReplay counts the kernels of a replay: for the operators around each at capture and, in the
// totals, for those that the replay was launched in.
func (c *collector) countReplay(l *graphs.Launch) {
	of := c.classesOf(l.Capture, l.Rank)
	worked := make([]bool, len(l.Capture.Frames))
	for node := range l.Nodes {
		k := profile.Kernel{Event: l.Event(node), Device: l.Nodes[node].Device, Stream: l.Nodes[node].Stream}
		if !c.opt.Keeps(&k.Event) {
			continue
		}
		p := c.placeOf(&k.Event)
		inner := int32(none)
		for at := range l.Around(node) {
			class := of.class[at]
			if class == none {
				continue
			}
			nested := of.nested[at] | c.launchedIn(p, class)
			if inner == none {
				inner = class
				c.own(class, k.Dur())
			}
			s := &c.sums[class]
			s.gpu.count(&frame{nested: nested}, k.Dur())
			if !worked[at] {
				worked[at] = true
				s.working++
			}
		}
		switch {
		case inner == none && p != nil && p.frame != none:
			t := c.list[p.thread-1]
			c.launched(t, p.frame, k.Dur())
			inner = t.frames[p.frame].class
		case inner == none:
			c.countOutside(&k, inGraph)
			continue
		case p != nil && p.frame != none:
			c.around(c.list[p.thread-1], p.frame, k.Dur())
		}
		if c.visit != nil {
			c.visit.Work(&k, c.threads.classes[inner].name)
		}
	}
}

// launchedIn returns in what an operator is like those around a call.
func (c *collector) launchedIn(p *place, class int32) (nested nesting) {
	if p == nil || p.frame == none {
		return 0
	}
	t := c.list[p.thread-1]
	for at := p.frame; at != none; at = t.frames[at].around {
		nested |= c.likeness(class, t.frames[at].class)
	}
	return nested
}

// capturedOperator returns the operator that launched a copy of a graph at capture.
func (c *collector) capturedOperator(e *profile.Event) (trace.Sym, bool) {
	if c.replay == nil {
		return 0, false
	}
	l, node := c.replay.Find(e)
	if l == nil {
		return 0, false
	}
	place, ok := l.Place(node)
	return place.Operator, ok && place.Operator != 0
}
