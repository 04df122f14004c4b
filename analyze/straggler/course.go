package straggler

import "github.com/sgtrace/sgtrace/trace"

// A Course is how late the ranks of a group were as time went on.
type Course struct {
	Names       []string
	Group, What string
	From, To    trace.Time // bounds of the sync points
	// Late has a piece for each rank and each of equal parts of the time.
	Late [][]Piece
}

// A Piece is how late a rank was in a part of the time.
type Piece struct {
	N    int     // sync points at which it was
	Mean int64   // of its arrival minus the median of those of the others, ns
	Part float64 // that, of the time of the sync points; 0 where that is unknown
}

// Course divides the time between the first sync point and the last into equal parts.
// Without sync points there are no pieces.
func (g *Gathering) Course(parts int) *Course {
	g.settle()
	c := &Course{Names: g.Names, Group: g.Group, What: g.What, Late: make([][]Piece, len(g.Names))}
	if len(g.SyncPoints) == 0 {
		return c
	}
	c.From, c.To = g.SyncPoints[0].at, g.SyncPoints[len(g.SyncPoints)-1].at
	took := make([]float64, parts) // mean, ns
	points := make([]int, parts)
	for i := range g.SyncPoints {
		p := c.part(g.SyncPoints[i].at, parts)
		took[p] += float64(g.SyncPoints[i].Took)
		points[p]++
	}
	for p := range took {
		took[p] /= float64(max(1, points[p]))
	}
	for rank := range c.Late {
		c.Late[rank] = g.pieces(c, rank, took)
	}
	return c
}

// part is the part of the time that a moment is in.
func (c *Course) part(at trace.Time, parts int) int {
	if c.To == c.From {
		return 0
	}
	return min(parts-1, int(float64(at-c.From)/float64(c.To-c.From)*float64(parts)))
}

// pieces sums up a rank in each part; took is how long sync points last there.
func (g *Gathering) pieces(c *Course, rank int, took []float64) []Piece {
	list, sums := make([]Piece, len(took)), make([]float64, len(took))
	for i := range g.SyncPoints {
		if late := g.late[i*len(g.Names)+rank]; late != NoArrival {
			p := c.part(g.SyncPoints[i].at, len(took))
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
