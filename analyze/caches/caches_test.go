package caches

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// chats plays 20 chats for 600 s. Each asks every 8 s on average, with about 9 of 10 tokens of its prompt cached, unless it has not
// asked since the last flush. From 150 s on, each minute, flushed empties the cache, and strangers adds 20 prompts that are not cached.
func chats(seed uint64, flushed, strangers bool) (*Caches, []prompt) {
	const cron, first = 60.0, 150.0
	rnd := rand.New(rand.NewPCG(seed, 8))
	c := &Caches{set: &request.Set{}}
	var list []prompt
	ask := func(at, share float64) {
		t := trace.Time(at * 1e9)
		c.set.Requests = append(c.set.Requests, request.Request{Start: t, End: t + 1e9})
		list = append(list, prompt{len(list), t, share, 1000 + 1000*rnd.Float64()})
	}
	for range 20 {
		asked := math.Inf(-1)
		for at := rnd.ExpFloat64() * 8; at < 600; at += rnd.ExpFloat64() * 8 {
			share := 0.85 + 0.1*rnd.Float64()
			if emptied := first + cron*math.Floor((at-first)/cron); math.IsInf(asked, -1) || flushed && at >= first && asked < emptied {
				share = 0
			}
			ask(at, share)
			asked = at
		}
	}
	for at := first; strangers && at < 600; at += cron {
		for range 20 {
			ask(at+8*rnd.Float64(), 0)
		}
	}
	return c, list
}

// A cache that is emptied each minute is found, with the period, the times, and the cached shares before and after.
// Prompts of 20 strangers each minute are not mistaken for that, and neither are the first prompts of chats.
func TestEmptied(t *testing.T) {
	for seed := range uint64(2) {
		c, list := chats(seed, true, false)
		e := c.search(list, 1)
		if e == nil {
			t.Fatalf("seed %d: caches are not found", seed)
		}
		if p := &e.pulses; math.Abs(p.Every-60) > 2 || math.Abs(p.Begin(p.Seen[0])-150) > 5 || len(p.Seen) < 7 {
			t.Errorf("seed %d: every %.1f s since %.1f s, %d times", seed, p.Every, p.Begin(p.Seen[0]), len(p.Seen))
		}
		if e.before < 0.8 || e.after > 0.5 {
			t.Errorf("seed %d: %.2f to %.2f is cached", seed, e.before, e.after)
		}
		e.at, e.ranks, e.all = place.Location{Scope: place.WholeRole, Role: request.Unified}, 2, 2
		if text := e.sentence(c); !strings.HasPrefix(text, "share of cached tokens on both unified servers falls from 8") {
			t.Error(text)
		}
		for _, strangers := range []bool{false, true} {
			c, list := chats(seed, false, strangers)
			if e := c.search(list, 1); e != nil {
				t.Errorf("seed %d, strangers %v: %+v", seed, strangers, e.pulses)
			}
		}
	}
}
