package diff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A serving describes what servers log in ten minutes: every second, a line of a prefill and one of 40 decode steps.
type serving struct {
	servers                        int
	came, prompt, cached           float64 // requests per second of all servers; tokens; share
	step, slowServer, queued, most float64 // ms; factor of the last server; waiting requests; maximum of running requests
}

func (s *serving) capture(seed uint64) *diff.Collected {
	rng := rand.New(rand.NewPCG(seed, 9))
	near := func(v, spread float64) float64 { return v * (1 + spread*rng.NormFloat64()) }
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	for k := range s.servers {
		f := set.Fill(fmt.Sprintf("server%d.log", k), "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: fmt.Sprintf("server%d", k), Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		take := s.step
		if k == s.servers-1 && s.slowServer > 0 {
			take *= s.slowServer
		}
		for i := range 600 {
			f.Line(int64(i + 1))
			at := trace.Time(1_790_000_000+i) * 1e9
			add := func(m series.MetricID, v float64) { f.Add(f.Series(m, p), at, v) }
			each := s.came / float64(s.servers)
			// An answer has 150 tokens, so that the number of running requests is the number that arrives during that time.
			seqs, running := math.Round(near(each, 0.2)), math.Min(s.most, math.Round(near(0.15*each*(take+3), 0.15)))
			tokens := seqs * near(s.prompt, 0.1)
			add(series.NewSeqs, seqs)
			add(series.NewTokens, math.Round(tokens*(1-s.cached)))
			add(series.CachedTokens, math.Round(tokens*s.cached))
			add(series.Running, running)
			add(series.Queued, s.queued)
			add(series.Generation, running*1000/near(take+0.3*running, 0.02))
		}
	}
	set.Finish(series.Known{})
	d := diff.NewCollected(0)
	d.Add(diff.Capture{Series: set})
	return d
}

// The reason why servers are slower or have more to do comes first in the title. Two equal days do not differ.
func TestLoggedReasons(t *testing.T) {
	usual := serving{servers: 3, came: 9, prompt: 800, cached: 0.5, step: 20, most: 100}
	for _, c := range []struct {
		what  string
		alter func(*serving)
		want  string
		setup string
	}{
		{"nothing", func(*serving) {}, "No significant difference; logged decode steps and the prefills between them take as long", ""},
		{"slower", func(s *serving) { s.step = 23 }, "logged decode steps and the prefills between them take longer for the same work: 2", ""},
		{"one is slower", func(s *serving) { s.slowServer = 1.3 }, "logged decode steps and the prefills between them take longer for the same work on unified (server2) only: 2", ""},
		{"fewer servers", func(s *serving) { s.servers = 2 }, "Setup differs: servers in logs and metrics 3 -> 2; ", "Setup differs: servers in logs and metrics 3 -> 2; "},
		{"longer prompts", func(s *serving) { s.prompt = 1200 }, "prompt tokens of a request 80", ""},
		{"less is cached", func(s *serving) { s.cached = 0.2 }, "hit rate, % 50 -> 20 (", ""},
		{"a limit", func(s *serving) { s.most, s.queued = 5, 40 }, "logged decode steps and the prefills between them have 1", ""},
	} {
		after := usual
		c.alter(&after)
		d := diff.Compare(usual.capture(1), after.capture(2), diff.Options{})
		title := d.SideReport().Title
		if !strings.HasPrefix(title, c.want) {
			t.Errorf("%s: %s", c.what, title)
		}
		if found := d.Findings(); (len(found) == 0) != (c.what == "nothing") || len(found) > 0 && !strings.HasPrefix(strings.TrimPrefix(title, c.setup), found[0].Text) {
			t.Errorf("%s: %q is not what is found first: %+v", c.what, title, found)
		}
	}
}
