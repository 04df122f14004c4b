package rank

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Stages that the dump does not show belong to the server of the finding.
func TestHiddenStages(t *testing.T) {
	at := func(scope place.Scope, host string, pp int16) place.Location {
		return place.Location{Scope: scope, Role: request.Unified, Host: host, Rank: trace.Rank{TP: 0, PP: pp, DP: -1, EP: -1, Global: -1}}
	}
	var loads []Load
	for _, of := range []place.Location{at(place.OneRank, "a", 0), at(place.OneRank, "a", 1), at(place.OneRank, "a", 2), at(place.OneRank, "b", 0)} {
		loads = append(loads, Load{Location: of})
	}
	role, a, b := at(place.WholeRole, "", -1), at(place.OneRank, "a", -1), at(place.OneRank, "b", -1)
	for _, c := range []struct {
		unlaunched bool
		at         *place.Location
		want       int
	}{{true, &role, 3}, {true, &a, 3}, {true, &b, 0}, {false, &a, 0}} {
		r := &Ranks{unlaunched: c.unlaunched, Loads: loads}
		if got := r.HiddenStages(c.at); got != c.want {
			t.Errorf("at %v: %d stages, want %d", c.at, got, c.want)
		}
	}
}
