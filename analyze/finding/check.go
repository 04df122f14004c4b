package finding

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// Check says how much a finder looked at, and whether that was enough to tell something.
type Check struct {
	What string // "who is late in steps of TP ranks"
	Of   string // what it is made of: "step"
	// N is how many of these there are, and Needed how many it takes.
	N, Needed int
	// Covered is how much of the time that it is about was looked at.
	Covered Coverage
	// Reason says why the question does not apply: "there are no pipelines". "" is
	// that there may be.
	Reason string
}

// Coverage is how much of some time is known, in ns. The zero value is all of it.
type Coverage struct {
	Of         string // "communication time"
	Known, All int64
}

// Share returns the known part, 1 where there is no time.
func (c Coverage) Share() float64 {
	if c.All == 0 {
		return 1
	}
	return min(1, float64(c.Known)/float64(c.All))
}

// enoughKnown is the part of the time that has to be known before anything is said of the whole.
const enoughKnown = 0.9

// Enough reports whether that is enough to say something of the whole.
func (c Coverage) Enough() bool { return c.Share() >= enoughKnown }

// String says in words how much is known, "" if it is practically all.
func (c Coverage) String() string {
	const all = 0.995
	if c.Share() >= all {
		return ""
	}
	share := c.Share()
	if !c.Enough() {
		share = min(share, enoughKnown-0.006) // rounded, it must not seem to be enough
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

// State tells whether there was enough to judge.
func (c *Check) State() State {
	switch {
	case c.Reason != "":
		return NotApplicable
	case c.N < c.Needed || !c.Covered.Enough():
		return TooLittle
	}
	return LookedAt
}

// String says in words what came of looking.
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
