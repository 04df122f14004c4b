package work

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// Burdens returns how many ns a unit of each burden costs, by least squares of what differs
// between pieces at about the same time: what takes longer at a later time may do so for
// other reasons. At a time at which it changes, pieces differ for that reason, too: what their burdens
// leave unexplained counts less by as much as that is more than at half of the times. It is not what varies in all:
// where all batches are full, they take as long, and what differs between them is only how many tokens each is taken to have.
// More work takes no less time.
func (p *Pace) Burdens() (by Burden) {
	const blocks, fewest = 24, 12
	pieces := p.joined()
	size := max(fewest, (len(pieces)+blocks-1)/blocks)
	var list []covariances
	var variances []float64
	for block := range slices.Chunk(pieces, size) {
		c := covariancesOf(block)
		list, variances = append(list, c), append(variances, c.unexplained())
	}
	slices.Sort(variances)
	usual := variances[len(variances)/2]
	var sum covariances
	for _, c := range list {
		weight := 1 / max(c.unexplained(), usual, math.SmallestNonzeroFloat64)
		for k := range sum.right {
			sum.right[k] += weight * c.right[k]
			for j := range sum.right {
				sum.normal[k][j] += weight * c.normal[k][j]
			}
		}
	}
	by, _ = sum.best()
	return by
}

// best returns what a unit of each burden costs, by those that explain most, of which none takes less time for more, and how much that is.
func (c *covariances) best() (by Burden, most float64) {
	for some := 1; some < 1<<len(by); some++ {
		if x, explains := c.solve(some); explains > most {
			by, most = x, explains
		}
	}
	return by, most
}

// unexplained is the variance of what a token takes that no burden explains.
func (c *covariances) unexplained() float64 {
	_, explains := c.best()
	return max(0, c.variance-distribution.Ratio(explains, c.units))
}

// joined are the pieces, of which those that follow each other without a pause are one, of what they have on average. Prompts that go on in the
// next batch have a part of their tokens in either, which nobody knows: in all of them, they have as many as they have.
func (p *Pace) joined() []Piece {
	const most = 8
	if !p.Sized {
		return p.Pieces
	}
	var out []Piece
	until := trace.Time(0) // of the last one
	for _, x := range p.Pieces {
		n := len(out)
		if n == 0 || x.From != until || out[n-1].Units >= most {
			out, until = memory.Append(out, x), x.To
			continue
		}
		o := &out[n-1]
		units := o.Units + x.Units
		for k := range o.Burden {
			o.Burden[k] = (o.Units*o.Burden[k] + x.Units*x.Burden[k]) / units
		}
		o.NS, o.Units, until = (o.Units*o.NS+x.Units*x.NS)/units, units, x.To
	}
	return out
}

// A Burden is what makes a piece of work longer, each by as much for one more of it; what a pace has less of is 0.
type Burden [3]float64

// solve returns what a unit of each of some burdens costs, by bits, and how much they explain; nothing if two of them say
// nearly the same, or one of them costs nothing.
func (c *covariances) solve(some int) (by Burden, explains float64) {
	const apart = 1e-9
	a, b := c.normal, c.right
	for k := range b {
		if some>>k&1 == 0 {
			continue
		}
		if !(a[k][k] > apart*c.normal[k][k]) {
			return Burden{}, 0
		}
		for j := range b {
			if j == k || some>>j&1 == 0 {
				continue
			}
			factor := a[j][k] / a[k][k]
			b[j] -= factor * b[k]
			for i := range b {
				a[j][i] -= factor * a[k][i]
			}
		}
	}
	for k := range b {
		if some>>k&1 == 0 {
			continue
		}
		if by[k] = b[k] / a[k][k]; !(by[k] > 0) {
			return Burden{}, 0
		}
		explains += by[k] * c.right[k]
	}
	return by, explains
}

// Covariances are how what pieces take goes with their burdens, and these with each other; sums over tokens.
type covariances struct {
	normal   [len(Burden{})]Burden
	right    Burden
	variance float64 // of what a token takes
	units    float64
}

func covariancesOf(block []Piece) (c covariances) {
	mean, y, n := Burden{}, 0.0, 0.0
	for _, x := range block {
		y, n = y+x.Units*x.NS, n+x.Units
		for k, v := range x.Burden {
			mean[k] += x.Units * v
		}
	}
	c.units = n
	for _, x := range block {
		off := x.NS - y/n
		c.variance += x.Units * off * off / n
		d := x.Burden
		for k := range d {
			d[k] -= mean[k] / n
		}
		for k := range d {
			c.right[k] += x.Units * d[k] * off
			for j := range d {
				c.normal[k][j] += x.Units * d[k] * d[j]
			}
		}
	}
	return c
}
