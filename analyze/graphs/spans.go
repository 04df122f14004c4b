package graphs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Span is a module or an operator that kernels of a replay were launched in at capture, one after
// another on a stream. Spans of a stream nest.
type Span struct {
	First        int32 // its first kernel, by [profile.Event.At]
	From, To     trace.Time
	Name, Shapes trace.Sym // Shapes are 0 for modules
	Operator     bool
}

// place is where a node ran.
type place struct {
	rank, device int32
	stream       uint32
}

// An openSpan is a span that the next node may be in.
type openSpan struct {
	launch *Launch
	frame  int32 // of its capture
	at     int   // index into spans
}

// Spans returns the spans of the replays of a stream of the set: all modules and ranges around each
// kernel, and the innermost operator. Outer ones come first.
func (g *Graphs) Spans(stream int) (spans []Span) {
	isModule := trace.EachName(g.set.Syms, func(name string) bool { return strings.HasPrefix(name, profile.ModulePrefix) })
	open := map[place][]openSpan{}
	var chain []int32
	for i := range g.Streams[stream].Launches {
		l := &g.Streams[stream].Launches[i]
		if l.Capture == nil {
			continue
		}
		for _, node := range l.inTime() {
			n := &l.Nodes[node]
			at := place{l.Rank, n.Device, n.Stream}
			chain = g.outline(chain[:0], l, node, isModule)
			in, same := open[at], 0
			for same < len(in) && same < len(chain) && in[same].launch == l && in[same].frame == chain[same] {
				same++
			}
			for _, o := range in[same:] { // a kernel may start before the previous one ends
				spans[o.at].To = min(spans[o.at].To, n.Start)
			}
			in = in[:same]
			for _, frame := range chain[same:] {
				in = append(in, openSpan{l, frame, len(spans)})
				f := &l.Capture.Frames[frame]
				spans = append(spans, Span{First: n.at, From: n.Start, Name: g.spanName(f), Shapes: l.Capture.ShapesOf(frame), Operator: f.Kind == profile.OperatorFrame})
			}
			for _, o := range in {
				spans[o.at].To = max(spans[o.at].To, n.Start+trace.Time(n.Dur))
			}
			open[at] = in
		}
	}
	return spans
}

// inTime returns the nodes of a replay in the order of time.
func (l *Launch) inTime() []int {
	return order.Sorted(len(l.Nodes), func(a, b int) int {
		if l.byTime {
			return 0 // they are in that order
		}
		return cmp.Compare(l.Nodes[a].Start, l.Nodes[b].Start)
	})
}

// outline appends the frames around a node that have spans, the outer ones first.
func (g *Graphs) outline(chain []int32, l *Launch, node int, isModule *trace.PerName[bool]) []int32 {
	operator := false
	for at, f := range l.Around(node) {
		switch f.Kind {
		case profile.OperatorFrame:
			if operator {
				continue
			}
			operator = true
		case profile.PythonFrame:
			if !isModule.Of(f.Name) {
				continue
			}
		}
		chain = append(chain, at)
	}
	slices.Reverse(chain)
	return chain
}

// spanName returns the name of a span: for modules, without their prefix.
func (g *Graphs) spanName(f *Frame) trace.Sym {
	if f.Kind != profile.PythonFrame {
		return f.Name
	}
	return g.set.Syms.Intern(strings.TrimPrefix(g.set.Syms.Name(f.Name), profile.ModulePrefix))
}
