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
	// MinChange is the smallest relative change that matters: captures of the same thing differ by that much from day to day.
	MinChange = 0.03
)

// A Change is how a number changed, and whether that is more than chance. Its P is corrected for all numbers of its family.
type Change struct {
	Change significance.Change
	// Sure is Certain if at most one comparison in 20 has any change by chance with such a P, and Likely if at most
	// one in 20 such changes is chance. "" means that the change may be chance, or that there is not enough data.
	Sure finding.Confidence
}

// UnknownChange is the change of a number that a row does not have.
var UnknownChange = significance.Change{Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}

// Significant reports whether the change is at least likely.
func (c *Change) Significant() bool { return c.Sure != "" }

// Matters reports whether the change is significant, and large enough to report.
func (c *Change) Matters() bool {
	return c.Significant() && !(math.Abs(c.Change.Ratio-1) < MinChange) // the ratio of something to nothing is NaN
}

// Tested reports whether the captures are long enough to say anything.
func (c *Change) Tested() bool { return !math.IsNaN(c.Change.P) }

// Tells reports whether the number is informative: it changed, or there is a bound to how much it may have changed.
func (c *Change) Tells() bool { return c.Tested() && !c.Vague() }

// Size returns the absolute logarithm of the factor by which the number changed.
func (c *Change) Size() float64 {
	if c.Change.Ratio > 0 {
		return math.Abs(math.Log(c.Change.Ratio))
	}
	return 0
}

// Vague reports whether the number may as well have halved as doubled: there are too few
// pieces, or they scatter too much. Its interval would only seem to be informative.
func (c *Change) Vague() bool {
	return !c.Significant() && !math.IsNaN(c.Change.Ratio) && !math.IsNaN(c.Change.Low) && !math.IsNaN(c.Change.High) && c.Change.Low <= 0.5 && c.Change.High >= 2
}

// Correct corrects P of changes for their number and for n families, and sets Sure.
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
