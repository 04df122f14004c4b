package finders

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/consequence"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func rankAt(role request.Role, host string, tp, dp int16) place.Location {
	rank := trace.NoRank
	rank.TP, rank.DP = tp, dp
	return place.Location{Scope: place.OneRank, Role: role, Host: host, Rank: rank}
}

// Requests that wait at a limit since servers became slower are a consequence of that. They are not
// if a server elsewhere became slower, if the limit was reached before, or if arrivals rose first.
func TestLimitsOfSlowerServers(t *testing.T) {
	all := place.Location{Scope: place.WholeRole, Role: request.Unified}
	slower := finding.Finding{Kind: finding.Change, Subkind: change.Pace, At: all, Since: 30e9, Until: 55e9, Cost: 0.1, CostBasis: finding.RequestTime, Text: "slower", Metric: finding.Metric{Before: 20, After: 40}}
	limit := finding.Finding{Kind: finding.Limit, Subkind: serverlimit.Running.String(), At: rankAt(request.Unified, "a", 0, -1), Since: 34e9, Cost: 0.3, CostBasis: finding.RequestTime, Text: "limit"}
	more := finding.Finding{Kind: finding.Load, Since: 28e9, Cost: 0.2, CostBasis: finding.RequestTime, Text: "arrivals", Metric: finding.Metric{Name: change.Arrivals, Before: 1, After: 2}}
	elsewhere, earlier := slower, limit
	elsewhere.At, earlier.Since = rankAt(request.Unified, "b", 0, -1), 10e9
	rules := slices.Concat(consequence.Known, (&Measured{Limits: &serverlimit.Limits{}}).overloaded())
	for _, test := range []struct {
		found []finding.Finding
		want  []string
	}{
		{[]finding.Finding{slower, limit}, []string{"slower"}},
		{[]finding.Finding{elsewhere, limit}, []string{"slower", "limit"}},
		{[]finding.Finding{slower, earlier}, []string{"slower", "limit"}},
		{[]finding.Finding{slower, more, limit}, []string{"slower", "arrivals"}},
	} {
		var texts []string
		for _, f := range finding.Merge(test.found, rules) {
			texts = append(texts, f.Text)
		}
		if !slices.Equal(texts, test.want) {
			t.Errorf("%q, want %q", texts, test.want)
		}
	}
}
