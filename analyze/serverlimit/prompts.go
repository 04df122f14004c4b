package serverlimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// LongPrompts is the subkind of findings about prompts that are far longer than the others.
const LongPrompts = "long prompts"

// A prompt is that of a request, as the server has it that computes it.
type prompt struct {
	load.Prefill
	came trace.Time // when it began to wait there
}

// Prompts are far longer than others where none lies between, by a factor of apart. They are not many,
// and not so few that each is told by itself.
const (
	apart      = 1.5
	fewPrompts = 8
	maxLong    = 0.25
)

// PromptFindings tells of prompts that are far longer than the others: since when there are any, and what they and
// those that wait for them take longer.
func (l *Limits) PromptFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "limits of servers", Of: "request", N: l.Requests, Needed: finding.FewCompared}
	if l.Requests < finding.FewCompared {
		return nil, check
	}
	type asked struct {
		at     trace.Time
		tokens int64
	}
	var list []asked
	for i := range l.servers {
		for _, k := range l.servers[i].served {
			if r := &l.set.Requests[k]; l.servers[i].location.Role != request.Decode && r.Metrics.PrefillTokens() > 0 {
				list = append(list, asked{r.Start, r.Metrics.PrefillTokens()})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y asked) int { return cmp.Compare(x.at, y.at) })
	tokens := make([]float64, len(list))
	for i := range list {
		tokens[i] = float64(list[i].tokens)
	}
	limit, usual := longFrom(tokens)
	if limit == 0 {
		return nil, check
	}
	saved := map[int]int64{} // ns that requests would take less if the long prompts were as long as the others
	for _, v := range l.servers {
		if v.location.Role != request.Decode {
			v.shorten(l.set, limit, usual, saved)
		}
	}
	var requests []int
	sum := int64(0)
	for r, ns := range saved {
		requests, sum = append(requests, r), sum+ns
	}
	slices.Sort(requests)
	long := make([]bool, len(list))
	for i := range list {
		long[i] = tokens[i] >= limit
	}
	p := findPeriod(long, changepoint.Shares(long, changepoint.Options{Alpha: surely}), func(k int) trace.Time { return list[k].at })
	cost := b.Part(float64(sum))
	if cost < minCost && (cost < minSudden || p.since == 0) {
		return nil, check
	}
	f := finding.Finding{
		Subkind: LongPrompts, At: place.Location{Scope: place.Everywhere}, Since: p.since, P: finding.Chance(p.p), Cost: cost,
		Claim: b.Amounts(saved, cause.Queue, cause.ChunkWait, cause.Prefill, cause.PrefillBootstrap, cause.PrefillSide, cause.Interference), Affected: finding.AffectedOf(l.set, requests),
		Metric: finding.Metric{Name: "tokens of long prompts", Unit: table.Number, Before: usual, After: limit},
	}
	if p.over {
		f.Until = list[p.to-1].at
	}
	n := changepoint.Count(long).In(p.from, p.to)
	f.Text = fmt.Sprintf("%s %% of the prompts%s have %s tokens or more to compute, the others %s on average; %s",
		words.InPercent(float64(n)/float64(p.to-p.from)), p.when(f.Until), words.Thousands(int64(limit)), words.Thousands(int64(usual)), l.promptEffect(limit, saved))
	return []finding.Finding{f}, check
}

// promptEffect says how long the prefills of long prompts take, and which others these hold up, given what each
// request would save.
func (l *Limits) promptEffect(limit float64, saved map[int]int64) string {
	var own, held, took, waited int64
	for _, v := range l.servers {
		for i := range v.intervals[prefilling] {
			if x := &v.intervals[prefilling][i]; v.location.Role != request.Decode && float64(l.set.Requests[x.request].Metrics.PrefillTokens()) >= limit {
				own, took = own+1, took+int64(x.time.To-x.time.From)
			}
		}
	}
	for r, ns := range saved {
		if float64(l.set.Requests[r].Metrics.PrefillTokens()) < limit && ns >= minKept {
			held, waited = held+1, waited+ns
		}
	}
	text := "their prefill takes " + words.Nearly(took/max(1, own)) + " on average"
	if held > 0 {
		text += fmt.Sprintf(", and holds up %s for %s", words.Counted(int(held), "other request"), words.Nearly(waited/held))
	}
	return text
}

// longFrom returns from how many tokens on prompts are far longer than the others, and how many these have on average; 0 if
// none are.
func longFrom(tokens []float64) (limit, usual float64) {
	limit = changepoint.Limit(tokens)
	below, sum, n := 0.0, 0.0, 0
	for _, x := range tokens {
		if x < limit {
			below, sum, n = max(below, x), sum+x, n+1
		}
	}
	if long := len(tokens) - n; limit < apart*below || long < fewPrompts || float64(long) > maxLong*float64(len(tokens)) {
		return 0, 0
	}
	return limit, distribution.Ratio(sum, float64(n))
}

// shorten plays what a server computed once more, with long prompts as long as the others, and adds what each request
// would take less. The server computes one batch after another, and a batch begins as soon as the one before
// it is over and one of its requests is there. Where requests waited for anything else for most of the time, they would have to, still.
func (v *server) shorten(s *request.Set, limit, usual float64, saved map[int]int64) {
	list := v.prompts(s)
	prefills := make([]load.Prefill, len(list))
	for i := range list {
		prefills[i] = list[i].Prefill
	}
	ahead, last := trace.Time(0), trace.Time(0) // by how much the server would be earlier; when the last batch was over
	next, under := 0, []*prompt(nil)            // prompts that begin later, and those that are computed
	decoding := decodes{v: v}
	for _, batch := range load.Batches(prefills) {
		first := trace.Time(math.MaxInt64)
		begun := next
		for ; next < len(list) && list[next].From < batch.To; next++ {
			first = min(first, list[next].came)
			under = append(under, &list[next])
		}
		if begun < next {
			waited := batch.From - first
			if ahead = min(ahead, max(0, waited)); 2*(batch.From-max(last, first)) > waited {
				ahead = 0
			}
			for _, p := range list[begun:next] {
				if ns := min(ahead, p.From-p.came); ns > 0 {
					saved[p.Request] += int64(ns)
				}
			}
		}
		less := 0.0 // tokens of the batch
		for _, p := range under {
			if p.Tokens >= limit {
				less += (p.Tokens - usual) * float64(min(p.To, batch.To)-max(p.From, batch.From)) / float64(p.To-p.From)
			}
		}
		shorter := trace.Time(float64(batch.To-batch.From) * min(1, max(0, distribution.Ratio(less, batch.Tokens))))
		if shorter > 0 {
			for _, p := range under {
				saved[p.Request] += int64(shorter)
			}
			for _, r := range decoding.during(batch.From, batch.To) {
				if !slices.ContainsFunc(under, func(p *prompt) bool { return p.Request == r }) {
					saved[r] += int64(shorter)
				}
			}
		}
		ahead, last = ahead+shorter, batch.To
		under = slices.DeleteFunc(under, func(p *prompt) bool { return p.To <= batch.To+request.SameBatch })
	}
}

// Decodes are the requests in the batch of a server, which go on when no prompt is computed.
type decodes struct {
	v     *server
	next  int   // of the intervals in which requests run
	under []int // intervals that began
}

// during returns which requests run from one time to another one. Later calls ask for later times.
func (d *decodes) during(from, to trace.Time) (requests []int) {
	all := d.v.intervals[running]
	for ; d.next < len(all) && all[d.next].time.From <= from; d.next++ {
		d.under = append(d.under, d.next)
	}
	d.under = slices.DeleteFunc(d.under, func(i int) bool { return all[i].time.To <= from })
	for _, i := range d.under {
		if all[i].time.To >= to {
			requests = append(requests, int(all[i].request))
		}
	}
	return requests
}

// prompts returns what a server computed, by start.
func (v *server) prompts(s *request.Set) []prompt {
	came := map[int32]trace.Time{}
	for i := range v.intervals[queued] {
		if q := &v.intervals[queued][i]; came[q.request] == 0 || q.time.From < came[q.request] {
			came[q.request] = q.time.From
		}
	}
	var list []prompt
	for i := range v.intervals[prefilling] {
		x := &v.intervals[prefilling][i]
		tokens := s.Requests[x.request].Metrics.PrefillTokens()
		if tokens <= 0 || i > 0 && v.intervals[prefilling][i-1].request == x.request {
			continue
		}
		p := prompt{Prefill: load.Prefill{Request: int(x.request), Requests: 1, From: x.time.From, To: x.time.To, Tokens: float64(tokens)}, came: x.time.From}
		if t := came[x.request]; t != 0 {
			p.came = min(t, p.From)
		}
		list = append(list, p)
	}
	return list
}
