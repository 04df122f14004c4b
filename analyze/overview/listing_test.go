package overview

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
)

// Asked what would have been without each finding, a list without findings says that there is none.
func TestNothingToTakeAway(t *testing.T) {
	for _, played := range []bool{false, true} {
		l := List{Result: &finders.Result{}, Played: played}
		if strings.Contains(l.looked(), "no cause to take away") != played {
			t.Errorf("played %v: %q", played, l.looked())
		}
	}
}
