package straggler

import "github.com/sgtrace/sgtrace/trace"

// Parts are equal parts of a time, the last moment of which is in the last one.
type Parts struct {
	From, To trace.Time
	n        int
}

// Of returns the part that a moment is in.
func (p *Parts) Of(at trace.Time) int {
	if p.To == p.From {
		return 0
	}
	return min(p.n-1, int(float64(at-p.From)/float64(p.To-p.From)*float64(p.n)))
}

// Parts divides the time from the first sync point to the last; it is 0 without any.
func (g *SyncSamples) Parts(n int) Parts {
	g.arrange()
	if len(g.SyncPoints) == 0 {
		return Parts{n: n}
	}
	return Parts{g.SyncPoints[0].At, g.SyncPoints[len(g.SyncPoints)-1].At, n}
}

// A History is how late the ranks of a group were as time went on.
type History struct {
	Parts
	Names       []string
	Group, What string
	// Late has a piece for each rank and part; nil without sync points.
	Late [][]Piece
}

// A Piece is how late a rank was in a part of the time.
type Piece struct {
	N    int     // sync points at which it was
	Mean int64   // of its arrival minus the median of those of the others, ns
	Part float64 // that, of the time of the sync points; 0 where that is unknown
}

// History divides the time between the first sync point and the last into equal parts.
// Without sync points there are no pieces.
func (g *SyncSamples) History(parts int) *History {
	c := &History{Parts: g.Parts(parts), Names: g.Names, Group: g.Group, What: g.What, Late: make([][]Piece, len(g.Names))}
	if len(g.SyncPoints) == 0 {
		return c
	}
	took, points := make([]float64, parts), make([]int, parts) // means, ns
	for i := range g.SyncPoints {
		p := c.Of(g.SyncPoints[i].At)
		took[p] += float64(g.SyncPoints[i].Took)
		points[p]++
	}
	for p := range took {
		took[p] /= float64(max(1, points[p]))
	}
	g.settle()
	for rank := range c.Late {
		c.Late[rank] = g.pieces(c, rank, took)
	}
	return c
}

// pieces sums up a rank in each part; took is how long sync points last there.
func (g *SyncSamples) pieces(c *History, rank int, took []float64) []Piece {
	list, sums := make([]Piece, len(took)), make([]float64, len(took))
	for i := range g.SyncPoints {
		if late := g.late[i*len(g.Names)+rank]; late != NoArrival {
			p := c.Of(g.SyncPoints[i].At)
			list[p].N++
			sums[p] += float64(late)
		}
	}
	for p := range list {
		if list[p].N == 0 {
			continue
		}
		mean := sums[p] / float64(list[p].N)
		list[p].Mean = int64(mean)
		if took[p] > 0 {
			list[p].Part = mean / took[p]
		}
	}
	return list
}
