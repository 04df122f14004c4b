package finding

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// Judged is what a finder looked at, and whether that was enough to tell something.
type Judged struct {
	What string // "who is late in steps of TP ranks"
	Of   string // what it is made of: "step"
	// N is how many of these there are, and Needed how many it takes.
	N, Needed int
	// Reason says why the question does not apply: "there are no pipelines". "" is
	// that there may be.
	Reason string
}

// State is what came of looking.
type State string

const (
	LookedAt      State = "looked at"
	TooLittle     State = "not enough data"
	NotApplicable State = "not applicable"
)

// State tells whether there was enough to judge.
func (j *Judged) State() State {
	switch {
	case j.Reason != "":
		return NotApplicable
	case j.N < j.Needed:
		return TooLittle
	}
	return LookedAt
}

// String says in words what came of looking.
func (j *Judged) String() string {
	switch j.State() {
	case NotApplicable:
		return fmt.Sprintf("Not applicable: %s: %s", j.What, j.Reason)
	case TooLittle:
		return fmt.Sprintf("Not enough data for %s: %s, %s needed", j.What, words.Counted(j.N, j.Of), words.Thousands(int64(j.Needed)))
	}
	return fmt.Sprintf("%s (%s)", j.What, words.Counted(j.N, j.Of))
}
