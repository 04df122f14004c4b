package work

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// Burdens returns what one unit of each burden costs, in ns, by weighted least squares. It compares pieces only within a block of
// time: later pieces may take longer for other reasons. In a block in which the speed of the server changes, much of the variance
// is due to that, so a block whose unexplained variance exceeds the median weighs less in proportion. Total variance would be the
// wrong weight: full batches all take equally long, and differ only in the tokens attributed to each. No cost is negative.
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

// best returns the unit costs of the subset of burdens that explains the most with positive costs only, and how much it explains.
func (c *covariances) best() (by Burden, most float64) {
	for some := 1; some < 1<<len(by); some++ {
		if x, explains := c.solve(some); explains > most {
			by, most = x, explains
		}
	}
	return by, most
}

// unexplained returns the variance of the time per token that no burden explains.
func (c *covariances) unexplained() float64 {
	_, explains := c.best()
	return max(0, c.variance-distribution.Ratio(explains, c.units))
}

// joined returns the pieces, with prefills that follow each other without a pause merged into one piece of average burden. A prompt that
// spills into the next batch has an unknown part of its tokens in each batch; the merged piece has all of them.
func (p *Pace) joined() []Piece {
	const most = 8
	if !p.Sized {
		return p.Pieces
	}
	var out []Piece
	until := trace.Time(0) // end of the last piece
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

// A Burden holds the quantities that lengthen a piece of work in proportion; unused ones are 0.
type Burden [3]float64

// solve returns the unit costs of the burdens in the bit set some, and how much they explain. It returns zeros if two
// burdens are nearly collinear, or if a cost is not positive.
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

// covariances are the normal equations of a block: sums of products of the burdens with each
// other and with the time per token, weighted by tokens.
type covariances struct {
	normal   [len(Burden{})]Burden
	right    Burden
	variance float64 // of the time per token
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
