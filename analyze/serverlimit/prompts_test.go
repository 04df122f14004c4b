package serverlimit

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A loneJob is a prompt on a server that computes one prompt at a time.
type loneJob struct {
	came, from, to trace.Time
	tokens         int64
}

// serve computes jobs in order of arrival, at 20 us per token.
func serve(jobs []loneJob) {
	free := trace.Time(0)
	for i := range jobs {
		j := &jobs[i]
		j.from = max(j.came, free)
		j.to = j.from + trace.Time(j.tokens*20_000)
		free = j.to
	}
}

// served returns the limits for the jobs of a prefill server.
func served(jobs []loneJob) *Limits {
	s := &request.Set{}
	v := &server{location: place.Location{Scope: place.OneRank, Role: request.Prefill, Host: "a"}}
	for i, j := range jobs {
		r := request.Request{Start: j.came, End: j.to}
		r.Metrics.PromptTokens, r.Metrics.CachedTokens = j.tokens, request.Unknown
		s.Requests = append(s.Requests, r)
		v.served = append(v.served, i)
		v.intervals[queued] = append(v.intervals[queued], stateInterval{time: request.Interval{From: j.came, To: j.from}, request: int32(i)})
		v.intervals[prefilling] = append(v.intervals[prefilling], stateInterval{time: request.Interval{From: j.from, To: j.to}, request: int32(i)})
	}
	return &Limits{Requests: len(jobs), set: s, servers: []*server{v}}
}

// planted returns prompts of 500 to 1,500 tokens, and a time from which on, in the second half, a
// share of them has 30,000 tokens.
func planted(seed uint64, share float64) (jobs []loneJob, since trace.Time) {
	r := rand.New(rand.NewPCG(seed, 1))
	at := trace.Time(1e9)
	for i := range 1200 {
		at += trace.Time(r.ExpFloat64() * 150e6)
		j := loneJob{came: at, tokens: 500 + r.Int64N(1000)}
		if i == 600 {
			since = at
		}
		if i >= 600 && r.Float64() < share {
			j.tokens = 30_000
		}
		jobs = append(jobs, j)
	}
	serve(jobs)
	return jobs, since
}

// Long prompts cost the time that requests would save if these prompts were as short as the others.
func TestLongPromptsCost(t *testing.T) {
	for seed := range uint64(4) {
		jobs, since := planted(seed, 0.04)
		l := served(jobs)
		tokens := make([]float64, len(jobs))
		for i := range jobs {
			tokens[i] = float64(jobs[i].tokens)
		}
		limit, usual := longFrom(tokens)
		if limit != 30_000 || usual < 900 || usual > 1100 {
			t.Fatalf("seed %d: from %v on, usual %v", seed, limit, usual)
		}
		saved := map[int]int64{}
		l.servers[0].shorten(l.set, limit, usual, saved)
		without, truth, sum := append([]loneJob(nil), jobs...), int64(0), int64(0)
		for i := range without {
			if without[i].tokens >= 30_000 {
				without[i].tokens = int64(usual)
			}
		}
		serve(without)
		for i := range jobs {
			truth += int64(jobs[i].to - without[i].to)
			sum += saved[i]
		}
		if math.Abs(float64(sum-truth)) > 0.05*float64(truth) {
			t.Errorf("seed %d: %d ms, planted %d ms", seed, sum/1e6, truth/1e6)
		}

		list := make([]cause.Attribution, len(jobs))
		for i := range list {
			list[i].Request = i
			list[i].E2E[cause.Queue], list[i].E2E[cause.Prefill] = int64(jobs[i].from-jobs[i].came), int64(jobs[i].to-jobs[i].from)
		}
		found, _ := l.PromptFindings(cause.NewCosts(l.set, list, cause.UsualOf(list)))
		if len(found) != 1 || found[0].Subkind != LongPrompts || !strings.Contains(found[0].Text, "30,000 tokens or more") {
			t.Fatalf("seed %d: %v", seed, found)
		}
		if f := &found[0]; f.Since < since-1e9 || f.Since > since+30e9 {
			t.Errorf("seed %d: since %v, planted at %v", seed, f.Since, since)
		}
	}
}

// If prompt lengths vary by chance, there are no long ones. Rare long prompts cost nothing if nobody waits.
func TestNoLongPrompts(t *testing.T) {
	jobs, _ := planted(1, 0)
	l := served(jobs)
	if found, _ := l.PromptFindings(cause.NewCosts(l.set, nil, cause.UsualOf(nil))); len(found) > 0 {
		t.Errorf("%v", found)
	}
	r := rand.New(rand.NewPCG(2, 2))
	tokens := make([]float64, 3000)
	for i := range tokens {
		tokens[i] = 600 * math.Exp(0.8*r.NormFloat64())
	}
	if limit, _ := longFrom(tokens); limit != 0 {
		t.Errorf("prompts of one distribution are long from %v tokens on", limit)
	}
}

// If a server waits for something else while it computes nothing, shorter prompts do not make it any earlier.
func TestWaitsForOtherThings(t *testing.T) {
	jobs := []loneJob{{came: 0, from: 0, to: 1e9, tokens: 30_000}, {came: 5e8, from: 5e9, to: 5.02e9, tokens: 1000}, {came: 5.1e9, from: 5.1e9, to: 5.12e9, tokens: 1000}}
	saved := map[int]int64{}
	l := served(jobs)
	l.servers[0].shorten(l.set, 30_000, 1000, saved)
	if saved[1] != 0 || saved[2] != 0 || saved[0] < 9e8 {
		t.Errorf("%v", saved)
	}
}
