package page

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
)

// With an SLO, a tile shows the goodput, and a panel shows it over time: every
// request meets an SLO of an hour, and none meets one of a nanosecond.
func TestGoodput(t *testing.T) {
	set := simulate(t, simulator.DefaultConfig(1))
	finished := 0
	for i := range set.Requests {
		if set.Requests[i].Status == request.Finished {
			finished++
		}
	}
	for _, c := range []struct {
		limit string
		met   int
	}{{"e2e=1h", finished}, {"e2e=1ns", 0}} {
		objectives, err := requests.ParseObjectives(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		o := overview.New(overview.Input{Inputs: []string{"otel.jsonl"}, Requests: set, SLO: objectives})
		p, err := Overview(o, made, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(p.Tiles, func(tile Tile) bool { return tile.Name == "Goodput" })
		if at < 0 || int(o.Goodput.All.Met) != c.met || c.met == 0 && p.Tiles[at].Value != "0" {
			t.Errorf("%s: %d met, tiles %+v", c.limit, o.Goodput.All.Met, p.Tiles)
		}
		if c.met > 0 && p.Tiles[at].Value != fmt.Sprintf("%.0f %%", 100*float64(c.met)/float64(o.Goodput.All.Judged())) {
			t.Errorf("%d of %d are %s", c.met, o.Goodput.All.Judged(), p.Tiles[at].Value)
		}
		checkLinks(t, p)
	}
}
