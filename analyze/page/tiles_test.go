package page

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/request"
)

// Tiles count requests by outcome, and show the medians of the finished ones.
func TestTiles(t *testing.T) {
	o, p := incident(t)
	ended := map[request.Status]int{}
	for i := range o.Requests.Requests {
		ended[o.Requests.Requests[i].Status]++
	}
	want := fmt.Sprintf("%d finished, %d aborted, %d failed", ended[request.Finished], ended[request.Aborted], ended[request.Failed])
	if got := p.Tiles[0]; got.Value != fmt.Sprint(len(o.Requests.Requests)) || got.Detail != want || got.State != Bad {
		t.Errorf("%+v, want %s", got, want)
	}
	var names []string
	for _, tile := range p.Tiles {
		names = append(names, tile.Name)
	}
	if fmt.Sprint(names) != "[Requests E2E user TTFT ITL]" {
		t.Errorf("tiles %v", names)
	}
}

// A single host's clock is trusted. With several hosts, the offset of each must be known.
func TestClockTile(t *testing.T) {
	reference, matched, alone := overview.HostClock{Why: "reference"}, overview.HostClock{Why: "matched", By: "requests", Bound: 1_240_000}, overview.HostClock{Why: "assumed"}
	for _, c := range []struct {
		clocks []overview.HostClock
		want   Tile
	}{
		{[]overview.HostClock{alone}, Tile{Value: "trusted", State: Good, Detail: "1 host"}},
		{[]overview.HostClock{reference, matched}, Tile{Value: "trusted", State: Good, Detail: "2 hosts, within 1.24 ms"}},
		{[]overview.HostClock{reference, matched, alone}, Tile{Value: "not trusted", State: Bad, Detail: "1 of 3 hosts taken as they are"}},
	} {
		got := clockTile(c.clocks)
		if got.Value != c.want.Value || got.State != c.want.State || got.Detail != c.want.Detail {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
