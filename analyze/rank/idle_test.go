package rank

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// If one of four DP ranks gets no requests at all, or no more from some time on,
// that is found. A few requests, or two ranks, are not enough evidence.
func TestDPRanksWithoutRequests(t *testing.T) {
	for _, x := range []struct {
		requests int
		ranks    int
		got      int // requests of rank 1
		want     string
	}{{400, 4, 0, "DP1 (a) gets no requests, while the other 3 DP ranks of its server get 400"},
		{400, 4, 60, "while the other 3 DP ranks of its server get 162"}, {400, 4, 133, ""}, {40, 4, 0, ""}, {400, 2, 0, ""}} {
		arrivals := map[int16][]trace.Time{}
		had := 0
		for i := range x.requests {
			dp := int16(i % x.ranks)
			if dp == 1 {
				if had++; had > x.got {
					dp = 2 * int16(i/x.ranks%2)
				}
			}
			arrivals[min(dp, int16(x.ranks-1))] = append(arrivals[min(dp, int16(x.ranks-1))], trace.Time(i+1)*1e9)
		}
		found := idleOf(place.Location{Scope: place.OneRank, Role: request.Unified, Host: "a", Rank: trace.NoRank}, arrivals)
		text := ""
		for _, f := range found {
			text += f.Text
		}
		if (text == "") != (x.want == "") || !strings.Contains(text, x.want) || len(found) > 1 {
			t.Errorf("%+v: %q", x, text)
		}
	}
}
