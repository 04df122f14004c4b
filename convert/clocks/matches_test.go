package clocks

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// In a collective without synchronization guarantees, ranks waited for the last one if they began apart but ended together.
// They did not if the root left early, if they ended as far apart as they began, or if clock errors may explain the difference.
func TestTimesShowThatRanksWaited(t *testing.T) {
	const us = 1000
	for name, c := range map[string]struct {
		times []trace.Time // start and end of each rank, us
		bound int64
		want  bool
	}{
		"ended together":         {[]trace.Time{0, 500, 400, 501, 100, 502}, 0, true},
		"the root left early":    {[]trace.Time{0, 100, 400, 500, 100, 501}, 0, false},
		"ended as they began":    {[]trace.Time{0, 500, 200, 700}, 0, false},
		"began nearly together":  {[]trace.Time{0, 500, 90, 500}, 0, false},
		"one after the other":    {[]trace.Time{0, 390, 400, 401}, 0, false},
		"clocks may be off":      {[]trace.Time{0, 500, 400, 500}, 101 * us, false},
		"clocks are good enough": {[]trace.Time{0, 500, 400, 500}, 99 * us, true},
	} {
		var list []profile.Arrival
		for i := 0; i < len(c.times); i += 2 {
			list = append(list, profile.Arrival{Rank: int32(i / 2), Start: c.times[i] * us, End: c.times[i+1] * us})
		}
		if got := waited(list, c.bound); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
