package profilewalk

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// Blocks is how many blocks the launches of a kernel have.
type Blocks struct {
	sum, launches int64
	unknown       bool // of some launch
}

// Add adds a launch.
func (b *Blocks) Add(g profile.Grid) {
	b.sum, b.launches, b.unknown = b.sum+int64(g.Blocks()), b.launches+1, b.unknown || g == 0
}

// Join adds the launches of o.
func (b *Blocks) Join(o *Blocks) {
	b.sum, b.launches, b.unknown = b.sum+o.sum, b.launches+o.launches, b.unknown || o.unknown
}

// Mean returns the mean of all launches; 0 if that of any is unknown.
func (b *Blocks) Mean() float64 {
	if b.unknown || b.launches == 0 {
		return 0
	}
	return float64(b.sum) / float64(b.launches)
}

// A Resized is a kernel whose time changed, or that takes longer on one rank than on others.
type Resized struct {
	Before, After float64 // mean blocks of a launch; 0 is unknown
	Time          float64 // how much of the time is of this kernel, in any unit
}

// More returns by which factor the launches of kernels have more blocks after than before, if these kernels take a
// number of times as long: 1 if nearly all have as many, so that they have as much to do, and another reason to take
// longer; 0 if neither is clear. Blocks are no measure for kernels that divide any amount of work among as many blocks as
// the device runs at once, which is why nearly all kernels must have as many.
func More(kernels []Resized, times float64) (factor float64) {
	const nearlyAll, equal = 0.9, 0.02
	total, known, same, more := 0.0, 0.0, 0.0, 0.0
	var grew []Resized
	for _, k := range kernels {
		if total += k.Time; k.Before == 0 || k.After == 0 {
			continue
		}
		known += k.Time
		switch ratio := k.After / k.Before; {
		case math.Abs(ratio-1) <= equal:
			same += k.Time
		case (ratio-1)/(times-1) >= 1.0/2:
			more += k.Time
			grew = append(grew, k)
		}
	}
	switch {
	case known < nearlyAll*total || known == 0:
		return 0
	case same >= nearlyAll*known:
		return 1
	case more < known/2:
		return 0
	}
	slices.SortFunc(grew, func(a, b Resized) int { return cmp.Compare(a.After*b.Before, b.After*a.Before) })
	for _, k := range grew {
		if factor, more = k.After/k.Before, more-2*k.Time; more <= 0 {
			break
		}
	}
	return factor
}

// WhyAlike says why nearly all kernels take a number of times as long, given by which factor their launches have more
// blocks: see [More]. clock is whose clock it may be: "its clock".
func WhyAlike(blocks, times float64, clock string) string {
	changed, amount := "lower", "more"
	if times < 1 {
		changed, amount = "higher", "less"
	}
	switch blocks {
	case 0:
		return fmt.Sprintf("as if %s were %s, or each had %s to do", clock, changed, amount)
	case 1:
		return fmt.Sprintf("launched with as many blocks, as if %s were %s", clock, changed)
	}
	return fmt.Sprintf("launched with %s times as many blocks (median): they have %s to do", words.ThreeDigits(blocks), amount)
}
