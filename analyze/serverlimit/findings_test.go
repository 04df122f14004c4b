package serverlimit

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
)

func TestLongPrompts(t *testing.T) {
	at := place.Location{Scope: place.OneRank, Role: request.Prefill, Host: "a"}
	l := &Limits{set: &request.Set{}}
	v := &server{location: at}
	add := func(n int, tokens int64, from int64) {
		for range n {
			r := request.Request{Start: 100, End: 200}
			if from != 0 {
				r.Start, r.End = 1000, 2000
			}
			r.Metrics.PromptTokens, r.Metrics.CachedTokens = tokens, 0
			v.served = append(v.served, len(l.set.Requests))
			l.set.Requests = append(l.set.Requests, r)
		}
	}
	add(98, 1000, 0)
	l.servers = []*server{nil, v}
	x := &Limit{Location: at, Kind: Prefills, From: 90, To: 300}
	if got := l.longPrompts(x); got != "" {
		t.Errorf("all are alike: %q", got)
	}
	add(2, 49_000, 0)
	if got, want := l.longPrompts(x), "; 2 of its 100 prompts have 49,000 tokens or more and are 50 % of what it computes meanwhile"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	add(10, 1_000_000, 1) // later
	if got, want := l.longPrompts(x), "; 2 of its 100 prompts have 49,000 tokens or more and are 50 % of what it computes meanwhile"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.Kind = Running
	if got := l.longPrompts(x); got != "" {
		t.Errorf("nobody waits for prefills: %q", got)
	}
}
