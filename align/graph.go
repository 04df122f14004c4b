package align

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// A node is a clock, or a set of clocks that are related to each other, in the graph of edges. At time t of the root
// of its tree,
//
//	node minus root = off + slope*(t-at)
type node struct {
	root int
	at   int64 // time of root
	off  int64
	// err is how far off `off` may be at `at`, and slopeErr how far off slope may be.
	slope, err, slopeErr float64
	from, to             int64 // time of root
	matches, trimmed     int
}

// relate solves the graph of edges by least squares. It returns a node for each end of an edge, and the edges that
// contradict the others, by index, with the size of the contradiction.
//
//  1. A tree of the best edges gives offsets, exact to the ns as they are integers, and shows which of the other
//     edges contradict it.
//  2. Weighted least squares over all consistent edges gives the slopes. Slopes that are not significant are zero.
//  3. Given these, weighted least squares gives the differences of the offsets from the tree's.
func relate(edges []*edge, better func(a, b int) int) (map[int]*node, map[int]excess) {
	rows := order.Sorted(len(edges), func(i, j int) int {
		a, b := edges[i], edges[j]
		return cmp.Or(cmp.Compare(a.worst(), b.worst()), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
	})
	g := newForest(edges, rows, better)
	wrong := map[int]excess{}
	parts := map[int][]*edge{} // by root
	for _, i := range rows {
		e := edges[i]
		if by, tolerated := g.contradiction(e); math.Abs(by) > tolerated {
			wrong[i] = excess{by, tolerated}
			continue
		}
		root := g.nodes[e.a].root
		parts[root] = append(parts[root], e)
	}
	for root, part := range parts {
		g.solve(root, part)
	}
	return g.nodes, wrong
}

// excess is by how much an edge contradicts the others, and how much is tolerated, in ns.
type excess struct{ by, tolerated float64 }

// worst returns how far off e may be at the ends of its window.
func (e *edge) worst() float64 {
	return e.bound() + e.driftError()*float64(e.to-e.from)/2
}

// A forest holds the trees of best edges.
type forest struct {
	nodes  map[int]*node
	parent map[int]*edge // edge toward the root
	depth  []int         // nodes, parents before their children
}

func newForest(edges []*edge, order []int, better func(a, b int) int) *forest {
	f := &forest{nodes: map[int]*node{}, parent: map[int]*edge{}}
	set := map[int]int{}
	var find func(int) int
	find = func(x int) int {
		if p, ok := set[x]; ok && p != x {
			set[x] = find(p)
			return set[x]
		}
		return x
	}
	tree := map[int][]*edge{}
	for _, i := range order {
		e := edges[i]
		ra, rb := find(e.a), find(e.b)
		if ra == rb {
			continue
		}
		tree[e.a], tree[e.b] = append(tree[e.a], e), append(tree[e.b], e)
		root := better(ra, rb)
		set[ra], set[rb] = root, root
	}
	ends := slices.Sorted(maps.Keys(tree))
	for _, n := range ends {
		if find(n) == n {
			f.nodes[n] = &node{root: n}
			f.depth = append(f.depth, n)
			f.grow(n, tree)
		}
	}
	return f
}

// grow places the descendants of n.
func (f *forest) grow(n int, tree map[int][]*edge) {
	for _, e := range tree[n] {
		child, off := e.b, e.off
		if e.b == n {
			child, off = e.a, -e.off
		}
		if f.nodes[child] != nil {
			continue
		}
		c := &node{root: f.nodes[n].root, off: f.nodes[n].off + off}
		f.nodes[child] = c
		f.parent[child] = e
		f.depth = append(f.depth, child)
		c.at = f.center(e)
		f.grow(child, tree)
	}
}

// center returns the center of e in the time of the root.
func (f *forest) center(e *edge) int64 { return e.at - f.nodes[e.a].off }

// up returns the node at the other end of the edge that leads from n to the root.
func (f *forest) up(n int) int {
	if e := f.parent[n]; e.a != n {
		return e.a
	}
	return f.parent[n].b
}

// drifted returns by how much n differs from its off at time t of the root, according to the
// slopes of the tree's edges, and the error of that.
func (f *forest) drifted(n int, t int64) (by, err float64) {
	for f.parent[n] != nil {
		e := f.parent[n]
		far := float64(t - f.center(e))
		if e.b == n {
			by += e.slope * far
		} else {
			by -= e.slope * far
		}
		err += e.bound() + e.driftError()*math.Abs(far)
		n = f.up(n)
	}
	return by, err
}

// contradiction returns by how much e differs from the tree, and by how much it may.
func (f *forest) contradiction(e *edge) (by, tolerated float64) {
	t := f.center(e)
	aBy, aErr := f.drifted(e.a, t)
	bBy, bErr := f.drifted(e.b, t)
	by = float64(e.off-(f.nodes[e.b].off-f.nodes[e.a].off)) - bBy + aBy
	return by, aErr + bErr + e.bound()
}

// solve fits the nodes below root.
func (f *forest) solve(root int, edges []*edge) {
	number := map[int]int{root: -1}
	var list []int
	for _, n := range f.depth {
		if f.nodes[n].root == root && n != root {
			number[n] = len(list)
			list = append(list, n)
		}
	}
	df := math.Inf(1)
	for _, e := range edges {
		df = min(df, e.df)
	}
	factor := tFactor(df)
	// Offsets are relative to the tree's, and slopes to one common instant.
	origin := f.nodes[list[0]].at

	slopes := &normal{n: len(list)}
	for _, e := range edges {
		// The slope is per time of a, whose own rate differs: a second-order effect.
		rate, _ := f.drifted(e.a, f.center(e)+1e9)
		slopes.add(number[e.a], number[e.b], e.slope*(1+rate*ppb), e.seSlope)
	}
	slope, slopeVar := slopes.solve()
	for i, n := range list {
		f.nodes[n].decide(slope[i], math.Sqrt(slopeVar[i]), factor)
	}
	offsets := &normal{n: len(list)}
	for _, e := range edges {
		a, b := f.nodes[e.a], f.nodes[e.b]
		rest := float64(e.off-(b.off-a.off)) - (b.slope-a.slope)*float64(f.center(e)-origin)
		offsets.add(number[e.a], number[e.b], rest, math.Hypot(e.seOff, 1))
	}
	delta, deltaVar := offsets.solve()
	f.errors(list, factor, deltaVar)
	f.count(root, edges)
	for i, n := range list {
		c := f.nodes[n]
		c.off += int64(math.Round(delta[i] + c.slope*float64(c.at-origin)))
	}
}

// decide uses the slope if it is significant.
func (n *node) decide(slope, se, factor float64) {
	if se <= minDriftError && math.Abs(slope) > driftSigmas*se*factor/tFactor(1000) {
		n.slope, n.slopeErr = slope, factor*se
		return
	}
	n.slope, n.slopeErr = 0, min(maxDrift, math.Abs(slope)+2*se)
}

// errors sets err of the nodes of a tree: noise comes from least squares, and the rest adds up along the way to the root.
func (f *forest) errors(list []int, factor float64, variance []float64) {
	system := map[int]float64{}
	for i, n := range list {
		c, up := f.nodes[n], f.up(n)
		system[n] = system[up] + f.parent[n].system()
		if f.parent[up] != nil {
			system[n] += f.nodes[up].slopeErr * math.Abs(float64(c.at-f.nodes[up].at))
		}
		c.err = system[n] + factor*math.Sqrt(variance[i])
	}
}

// count sums up, for each node, the matches and the time that its edges are based on.
func (f *forest) count(root int, edges []*edge) {
	for _, e := range edges {
		for _, n := range [...]int{e.a, e.b} {
			c := f.nodes[n]
			if n == root {
				continue
			}
			from, to := e.from-f.nodes[e.a].off, e.to-f.nodes[e.a].off
			if c.matches == 0 || from < c.from {
				c.from = from
			}
			if c.matches == 0 || to > c.to {
				c.to = to
			}
			c.matches += e.inliers
			c.trimmed += len(e.samples) - e.inliers
		}
	}
}
