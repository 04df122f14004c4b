package lifecycle

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// fleetOf plays three servers for 300 s that get ten random requests per second, each of 200 ms. The first server
// gets none for 20 s from each of the given times on.
func fleetOf(seed uint64, out ...trace.Time) *Lives {
	const second = trace.Time(1e9)
	rnd := rand.New(rand.NewPCG(seed, 2))
	o := &observer{}
	for i := range 3 {
		x := &server{role: request.Unified, at: place.Location{Scope: place.OneRank, Role: request.Unified, Host: string(rune('a' + i))}}
		x.lives = []*life{{server: x}}
		o.servers = append(o.servers, x)
	}
	for at := trace.Time(0); at < 300*second; at += trace.Time(rnd.ExpFloat64() * 0.1e9) {
		i := rnd.IntN(3)
		for i == 0 && order.Count(out, func(t trace.Time) bool { return at >= t*second && at < (t+20)*second }) > 0 {
			i = rnd.IntN(3)
		}
		x := o.servers[i].lives[0]
		x.jobs = append(x.jobs, job{start: at, last: at + second/5, ended: true})
		x.last = at + second/5
		o.starts[request.Unified] = append(o.starts[request.Unified], at)
	}
	return &Lives{observed: o}
}

// A server that gets no requests for 20 s, twice, is reported with the times. One that gets its share is not, nor
// one with a single such gap, which the change of its share already covers.
func TestLeftOut(t *testing.T) {
	found := fleetOf(1, 100, 200).leftOut()
	if len(found) != 1 || found[0].At.Host != "a" || !strings.Contains(found[0].Text, "got no requests for ") || !strings.Contains(found[0].Text, " 2 times") {
		t.Fatal(found)
	}
	if f := &found[0]; f.Since < 98e9 || f.Since > 101e9 || f.Until < 219e9 || f.Until > 222e9 {
		t.Errorf("from %v to %v", f.Since, f.Until)
	}
	for seed := range uint64(20) {
		if found := fleetOf(seed).leftOut(); len(found) > 0 {
			t.Errorf("seed %d: %s", seed, found[0].Text)
		}
	}
	if found := fleetOf(1, 100).leftOut(); len(found) > 0 {
		t.Error(found[0].Text)
	}
}
