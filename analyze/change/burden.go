package change

import (
	"math"
	"slices"
)

// burdens returns how many ns a unit of each burden costs, by least squares of what differs
// between pieces at about the same time: what takes longer at a later time may do so for
// other reasons. At a time at which it changes, pieces differ for that reason, too: what
// varies more than at half of the times counts less by as much. More work takes no less time.
func (p *pace) burdens() (by burden) {
	const blocks, fewest = 24, 12
	size := max(fewest, (len(p.work)+blocks-1)/blocks)
	var list []covariances
	var variances []float64
	for block := range slices.Chunk(p.work, size) {
		c := covariancesOf(block)
		list, variances = append(list, c), append(variances, c.variance)
	}
	slices.Sort(variances)
	usual := variances[len(variances)/2]
	var sum covariances
	for _, c := range list {
		weight := 1 / max(c.variance, usual, math.SmallestNonzeroFloat64)
		for k := range sum.right {
			sum.right[k] += weight * c.right[k]
			for j := range sum.right {
				sum.normal[k][j] += weight * c.normal[k][j]
			}
		}
	}
	most := 0.0
	for some := 1; some < 1<<len(by); some++ { // those that explain most, of which none takes less time for more
		if x, explains := sum.solve(some); explains > most {
			by, most = x, explains
		}
	}
	return by
}

// A burden is what makes a piece of work longer, each by as much for one more of it; what a pace has less of is 0.
type burden [3]float64

// solve returns what a unit of each of some burdens costs, by bits, and how much they explain; nothing if two of them say
// nearly the same, or one of them costs nothing.
func (c *covariances) solve(some int) (by burden, explains float64) {
	const apart = 1e-9
	a, b := c.normal, c.right
	for k := range b {
		if some>>k&1 == 0 {
			continue
		}
		if !(a[k][k] > apart*c.normal[k][k]) {
			return burden{}, 0
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
			return burden{}, 0
		}
		explains += by[k] * c.right[k]
	}
	return by, explains
}

// Covariances are how what pieces take goes with their burdens, and these with each other; sums over tokens.
type covariances struct {
	normal   [len(burden{})]burden
	right    burden
	variance float64 // of what a token takes
}

func covariancesOf(block []piece) (c covariances) {
	mean, y, n := burden{}, 0.0, 0.0
	for _, x := range block {
		y, n = y+x.units*x.ns, n+x.units
		for k, v := range x.burden {
			mean[k] += x.units * v
		}
	}
	for _, x := range block {
		off := x.ns - y/n
		c.variance += x.units * off * off / n
		d := x.burden
		for k := range d {
			d[k] -= mean[k] / n
		}
		for k := range d {
			c.right[k] += x.units * d[k] * off
			for j := range d {
				c.normal[k][j] += x.units * d[k] * d[j]
			}
		}
	}
	return c
}
