package lifecycle

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// If a router sends everything to one server, the others run out of requests at one time: that is one finding. A
// server that stops later is another.
func TestServersThatStopTogether(t *testing.T) {
	const second = trace.Time(1e9)
	o := &observer{}
	l := &Lives{set: &request.Set{}, observed: o}
	for i, at := range []trace.Time{100, 101, 160, 0} {
		x := &server{role: request.Unified, at: place.Location{Scope: place.OneRank, Role: request.Unified, Host: string(rune('a' + i)), Rank: trace.NoRank}}
		x.lives = []*life{{server: x, first: second}}
		if o.servers = append(o.servers, x); at != 0 {
			l.Events = append(l.Events, Event{At: at * second, by: (at + 3) * second, What: Stop, Server: x.at})
		}
	}
	found := l.cameAndWent()
	if len(found) != 2 || !strings.HasPrefix(found[0].Text, "2 of 4 unified servers have served nothing since ") || found[0].At.Scope != place.WholeRole || found[1].At.Host != "c" {
		t.Errorf("%+v", found)
	}
	l.Events[2].At, l.Events[2].by = 102*second, 104*second
	if found = l.cameAndWent(); len(found) != 1 || !strings.Contains(found[0].Text, "; all go to unified") {
		t.Errorf("%+v", found)
	}
}
