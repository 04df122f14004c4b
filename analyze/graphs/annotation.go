package graphs

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A named is the name of a node, and the file that it is from.
type named struct {
	name trace.Sym // 0 if files contradict each other
	file string
}

// annotate gives replays without a capture the names that the program gave their nodes: each graph that
// has any counts as captured in ranges of these names.
func (g *Graphs) annotate() {
	if len(g.set.Annotations) == 0 {
		return
	}
	names := make([]map[int64]named, len(g.set.Ranks))
	for rank := range names {
		names[rank] = g.namesOf(rank)
	}
	graphs, of := map[executable]*recorded{}, map[*Launch]*recorded{}
	var captures []*Capture
	for _, s := range g.Streams {
		for i := range s.Launches {
			l := &s.Launches[i]
			if l.Capture != nil {
				continue
			}
			var x *recorded
			for k := range l.Nodes {
				n := &l.Nodes[k]
				said := names[l.Rank][n.number]
				if said.name == 0 {
					continue
				}
				id := numbered{process{l.Rank, l.pid}, n.number}.executableOf()
				if x = graphs[id]; x == nil {
					x = &recorded{capture: &Capture{File: said.file, Rank: g.set.Ranks[l.Rank], Tokens: Unknown, batch: Unknown}, launch: map[int64]int32{}, by: ByAnnotation}
					graphs[id], captures = x, append(captures, x.capture)
				}
				x.add(n, said.name)
			}
			if x != nil {
				of[l] = x
			}
		}
	}
	describe(g.set.Syms, captures)
	for _, c := range captures {
		for i := range c.places {
			c.places[i].Layer = 0 // names do not tell which of them are layers
		}
	}
	for l, x := range of {
		l.Capture, l.Pairs = x.capture, x.pairs(l)
		g.exact = true
	}
}

// add adds a node that has a name, once.
func (r *recorded) add(n *Node, name trace.Sym) {
	if _, known := r.launch[n.number]; known {
		return
	}
	c := r.capture
	frame := int32(len(c.Frames))
	for i := range c.Frames {
		if c.Frames[i].Name == name {
			frame = int32(i)
			break
		}
	}
	if int(frame) == len(c.Frames) {
		c.Frames = append(c.Frames, Frame{Around: none, Kind: profile.RangeFrame, Name: name})
	}
	r.launch[n.number] = int32(len(c.Launches))
	c.Launches = append(c.Launches, Captured{Name: n.Name, Work: n.Work, Shape: n.Shape, Frame: frame})
}

// namesOf returns the names of the nodes of a rank. A file that does not say of which rank it is counts if
// there is one only: the numbers of nodes are those of a process, and others have them, too.
func (g *Graphs) namesOf(rank int) map[int64]named {
	names := map[int64]named{}
	for i := range g.set.Annotations {
		a := &g.set.Annotations[i]
		own := rank < len(g.set.Numbers) && a.Rank >= 0 && a.Rank == g.set.Numbers[rank]
		if !own && len(g.set.Ranks) > 1 {
			continue
		}
		if !own && a.Rank >= 0 && rank < len(g.set.Numbers) && g.set.Numbers[rank] >= 0 {
			continue // it is of another one
		}
		for node, text := range a.Names {
			name := g.set.Syms.Intern(text)
			if before, ok := names[node]; ok && before.name != name {
				name = 0
			}
			names[node] = named{name, a.File}
		}
	}
	return names
}
