package serverlimit

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Two servers serve 10 requests per second each, and one serves 5. Three servers as fast as the others would
// be enough for 28 per second, but not for 33. If only the slow one has a queue, its speed is the reason.
func TestWouldSuffice(t *testing.T) {
	const seconds = 100
	for _, c := range []struct {
		came    int // requests per second
		limited int // number of servers at their limit
		want    bool
	}{{28, 3, true}, {33, 3, false}, {33, 1, true}, {28, 0, false}} {
		l := &Limits{set: &request.Set{}}
		at := func(k int) place.Location {
			return place.Location{Scope: place.OneRank, Role: request.Unified, Host: string(rune('a' + k))}
		}
		for k, served := range []int{5, 10, 10} {
			v := &server{location: at(k)}
			for i := range seconds * c.came / 3 {
				from := trace.Time(i) * 3e9 / trace.Time(c.came)
				v.served = append(v.served, len(l.set.Requests))
				l.set.Requests = append(l.set.Requests, request.Request{Start: from, End: max(from, trace.Time(i)*1e9/trace.Time(served))})
			}
			l.servers = append(l.servers, v)
			if k < c.limited {
				l.List = append(l.List, Limit{Location: v.location, Kind: Running, From: 0, To: seconds * 1e9})
			}
		}
		slow := at(0)
		if got := l.WouldSuffice(&slow, Running.String()); got != c.want {
			t.Errorf("%d came, %d servers have some waiting: %v, want %v", c.came, c.limited, got, c.want)
		}
	}
}

// Of 10 ns of waiting at this limit, the first two requests have half. Waits at other limits do not count.
func TestMostlyBefore(t *testing.T) {
	l := &Limits{set: &request.Set{Requests: []request.Request{{Start: 1}, {Start: 2}, {Start: 10}, {Start: 11}}}}
	at := place.Location{Scope: place.OneRank, Role: request.Unified}
	l.List = []Limit{{Location: at, Kind: Running, waits: map[int]int64{0: 4, 2: 5}}, {Location: at, Kind: Running, waits: map[int]int64{1: 1}},
		{Location: at, Kind: Prefills, waits: map[int]int64{3: 100}}}
	for until, want := range map[trace.Time]bool{2: false, 3: true, 20: true} {
		if got := l.MostlyBefore(request.Unified, Running.String(), until); got != want {
			t.Errorf("before %d: %v", until, got)
		}
	}
}
