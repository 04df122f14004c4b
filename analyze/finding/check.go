package finding

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// A Check says how much data a finder looked at, and whether that was enough for a verdict.
type Check struct {
	What string // "who is late in steps of TP ranks"
	Of   string // what N counts: "step"
	// N is how many there are, and Needed how many a verdict takes.
	N, Needed int
	// Covered is how much of the time in question was looked at.
	Covered Coverage
	// Reason says why the question does not apply: "there are no pipelines". It is "" if the question applies.
	Reason string
}

// Coverage is the known part of some time, in ns. The zero value means all of it.
type Coverage struct {
	Of         string // "communication time"
	Known, All int64
}

// Share returns the known part, 0 to 1; 1 if there is no time.
func (c Coverage) Share() float64 {
	if c.All == 0 {
		return 1
	}
	return min(1, float64(c.Known)/float64(c.All))
}

// enoughKnown is the part of the time that must be known before a finder judges the whole.
const enoughKnown = 0.9

// Enough reports whether the known part is enough to judge the whole.
func (c Coverage) Enough() bool { return c.Share() >= enoughKnown }

// String returns the known part in words, or "" if practically all is known.
func (c Coverage) String() string {
	const all = 0.995
	if c.Share() >= all {
		return ""
	}
	share := c.Share()
	if !c.Enough() {
		share = min(share, enoughKnown-0.006) // even rounded, it must not look like enough
	}
	return fmt.Sprintf("%s %% of %s (%s of %s)", words.InPercent(share), c.Of, words.Nearly(c.Known), words.Nearly(c.All))
}

// State is the outcome of a search.
type State string

const (
	LookedAt      State = "looked at"
	TooLittle     State = "not enough data"
	NotApplicable State = "not applicable"
)

// State returns whether the question applies, and whether there was enough data to judge.
func (c *Check) State() State {
	switch {
	case c.Reason != "":
		return NotApplicable
	case c.N < c.Needed || !c.Covered.Enough():
		return TooLittle
	}
	return LookedAt
}

// String returns the outcome in words.
func (c *Check) String() string {
	switch c.State() {
	case NotApplicable:
		return fmt.Sprintf("Not applicable: %s: %s", c.What, c.Reason)
	case TooLittle:
		if c.N >= c.Needed {
			return fmt.Sprintf("Not judged: %s: only %s could be looked at, %.0f %% needed", c.What, c.Covered, 100*enoughKnown)
		}
		return fmt.Sprintf("Not judged: %s: %s, %s needed", c.What, words.Counted(c.N, c.Of), words.Thousands(int64(c.Needed)))
	}
	text := words.Counted(c.N, c.Of)
	if covered := c.Covered.String(); covered != "" {
		text += ", " + covered
	}
	return fmt.Sprintf("%s (%s)", c.What, text)
}
