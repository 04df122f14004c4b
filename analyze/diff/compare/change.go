package compare

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
)

const (
	// Alpha is the probability of finding any change at all where there is none.
	Alpha = 0.05
	// MinChange is what a change must be to matter: less than that, captures of the same
	// thing differ from day to day.
	MinChange = 0.03
)

// A Change is how a number changed, and whether that is more than chance. P is
// corrected for all numbers of its family.
type Change struct {
	Change significance.Change
	// Sure is Certain if any change that P lets pass would be chance in one of 20 comparisons
	// at most, Likely if one in 20 of such changes is; "" is that it may be chance, or that
	// there is not enough data to tell.
	Sure finding.Confidence
}

// UnknownChange is that of a number that a row does not have.
var UnknownChange = significance.Change{Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}

// Significant reports whether the change is likely at least.
func (c *Change) Significant() bool { return c.Sure != "" }

// Matters reports whether the change is significant, and large enough to be told.
func (c *Change) Matters() bool {
	return c.Significant() && !(math.Abs(c.Change.Ratio-1) < MinChange) // a ratio to nothing is NaN
}

// Tested reports whether the captures are long enough to say anything.
func (c *Change) Tested() bool { return !math.IsNaN(c.Change.P) }

// Tells reports whether the number says anything: whether it changed, or by how much it may have at most.
func (c *Change) Tells() bool { return c.Tested() && !c.Vague() }

// Size returns by which factor the number changed, in either direction, as a logarithm.
func (c *Change) Size() float64 {
	if c.Change.Ratio > 0 {
		return math.Abs(math.Log(c.Change.Ratio))
	}
	return 0
}

// Vague reports whether the number may as well have halved as doubled, so that its interval would
// only seem to say something: there are too few pieces, or they scatter too much.
func (c *Change) Vague() bool {
	return !c.Significant() && !math.IsNaN(c.Change.Ratio) && !math.IsNaN(c.Change.Low) && !math.IsNaN(c.Change.High) && c.Change.Low <= 0.5 && c.Change.High >= 2
}

// Correct pays for the questions of one of n families.
func Correct(changes []*Change, n float64) {
	p := order.Each(changes, func(c *Change) float64 { return n * c.Change.P })
	discoveries := significance.FalseDiscoveries(p)
	for i, v := range significance.Holm(p) {
		c := changes[i]
		switch c.Change.P = v; {
		case v <= Alpha:
			c.Sure = finding.Certain
		case discoveries[i] <= Alpha:
			c.Sure = finding.Likely
		}
	}
}
