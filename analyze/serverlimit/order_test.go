package serverlimit

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// queueOf plays a server that runs one request at a time, for 1 s each. Until 60 s, two requests arrive each
// second. With first, one of the two takes precedence over all others.
func queueOf(first bool) *Limits {
	const second = trace.Time(1e9)
	v := &server{location: place.Location{Scope: place.OneRank, Role: request.Unified, Host: "a"}}
	s := &request.Set{}
	type job struct {
		came  trace.Time
		index int32
	}
	var low, high []job
	add := func(list []job, at trace.Time) []job {
		s.Requests = append(s.Requests, request.Request{Start: at})
		return append(list, job{at, int32(len(s.Requests) - 1)})
	}
	for now := trace.Time(0); now < 120*second; now += second {
		if now < 60*second {
			low = add(low, now)
			if now%(2*second) == 0 && first {
				high = add(high, now+second/2)
			} else if now%(2*second) == 0 {
				low = add(low, now+second/2)
			}
		}
		from := &low
		if len(high) > 0 && high[0].came <= now {
			from = &high
		}
		if len(*from) == 0 || (*from)[0].came > now {
			continue
		}
		j := (*from)[0]
		*from = (*from)[1:]
		v.intervals[queued] = append(v.intervals[queued], stateInterval{time: request.Interval{From: j.came, To: now}, request: j.index})
		v.intervals[prefilling] = append(v.intervals[prefilling], stateInterval{time: request.Interval{From: now, To: now + second/10}, request: j.index})
	}
	order := v.intervals[queued]
	for i := range order { // in order of start
		for k := i; k > 0 && order[k].time.From < order[k-1].time.From; k-- {
			order[k], order[k-1] = order[k-1], order[k]
		}
	}
	return &Limits{set: s, servers: []*server{v}}
}

// Requests that take precedence overtake others that came first, which wait for that. In order of arrival, no request does.
func TestOvertaken(t *testing.T) {
	of := func(l *Limits) *Limit {
		x := &Limit{Location: l.servers[0].location, Kind: Running, To: 120e9, Requests: make([]int, len(l.set.Requests))}
		for _, h := range l.servers[0].intervals[queued] {
			x.Waited += int64(h.time.To - h.time.From)
		}
		return x
	}
	l := queueOf(true)
	x := of(l)
	// The first of the 30 finds no other waiting. Those that come at 0 and 1 s are computed before a later one comes, and behind the
	// one at 59 s none comes.
	if text := l.overtaken([]*Limit{x}); !strings.HasSuffix(text, "served first: 29 of them overtook 57 that wait (priorities?)") {
		t.Error(text)
	}
	for i := range l.set.Requests {
		r := &l.set.Requests[i]
		r.Metrics.PromptTokens = 1000
		if r.Start%1e9 != 0 {
			r.Metrics.CachedTokens = 800
		}
	}
	if text := l.overtaken([]*Limit{x}); !strings.Contains(text, "longest prefix first?") {
		t.Error(text)
	}
	l = queueOf(false)
	if text := l.overtaken([]*Limit{of(l)}); text != "" {
		t.Error(text)
	}
}

// Two requests that run during the whole time that others wait hold the server's room. Requests that replace each other do not.
func TestHolders(t *testing.T) {
	const second = trace.Time(1e9)
	v := &server{}
	runs := func(r int32, from, to trace.Time) {
		v.intervals[running] = append(v.intervals[running], stateInterval{time: request.Interval{From: from * second, To: to * second}, request: r})
	}
	runs(1, 0, 60)
	runs(1, 60, 200)
	runs(2, 5, 100)
	for at := trace.Time(0); at < 100; at += 10 {
		runs(3+int32(at), at, at+10)
	}
	if list := v.holders(10*second, 100*second); len(list) != 2 || list[0] != 1 || list[1] != 2 {
		t.Error(list)
	}
}
