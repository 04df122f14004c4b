package serverlimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// LongPrompts is the subkind of findings about prompts that are far longer than the others.
const LongPrompts = "long prompts"

// A prompt is the prefill of a request on a server.
type prompt struct {
	load.Prefill
	came trace.Time // when it began to wait for the server
}

// Prompts are far longer than the others if no length lies between, by a factor of apart. At most maxLong of all
// prompts may be. The longest few of any sample have gaps, so fewer than fewPrompts have to exceed nearly all others
// by a factor of farBeyond, and to cost minFewCost, which rules out chance.
const (
	apart       = 1.5
	farBeyond   = 3
	nearlyAllOf = 0.95
	fewPrompts  = 8
	maxLong     = 0.25
	minFewCost  = 0.02
)

// An asked is the number of tokens of a prompt that must be computed.
type asked struct {
	request int
	at      trace.Time
	tokens  float64
}

// asked returns what all requests ask for, sorted by time, and the tokens alone.
func (l *Limits) asked() (list []asked, tokens []float64) {
	for i := range l.servers {
		for _, k := range l.servers[i].served {
			if r := &l.set.Requests[k]; l.servers[i].location.Role != request.Decode && r.Metrics.PrefillTokens() > 0 {
				list = append(list, asked{k, r.Start, float64(r.Metrics.PrefillTokens())})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y asked) int { return cmp.Compare(x.at, y.at) })
	return list, order.EachRow(list, func(a *asked) float64 { return a.tokens })
}

// PromptFindings returns prompts that are far longer than the others: since when there are any, and how much longer
// they and the requests that wait for them take.
func (l *Limits) PromptFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	if l.Requests < finding.FewCompared {
		return nil, l.check()
	}
	list, tokens := l.asked()
	limit, usual := longFrom(tokens)
	if limit == 0 {
		return nil, l.check()
	}
	saved := map[int]int64{} // ns that requests would save if the long prompts were as long as the others
	for _, v := range l.servers {
		if v.location.Role != request.Decode {
			v.shorten(l.set, limit, usual, saved)
		}
	}
	beside, decode := l.besideLong(limit)
	var requests []int
	sum := int64(0)
	for _, of := range [...]map[int]int64{saved, decode} {
		for r, ns := range of {
			requests, sum = append(requests, r), sum+ns
		}
	}
	slices.Sort(requests)
	requests = slices.Compact(requests)
	cost := b.Part(float64(sum))
	f := finding.Finding{
		Subkind: LongPrompts, At: place.Location{Scope: place.Everywhere}, Cost: cost,
		Claim: b.Amounts(saved, cause.Queue, cause.ChunkWait, cause.Prefill, cause.PrefillBootstrap, cause.PrefillSide, cause.Interference).And(b.Amounts(decode, cause.SharedBatch, cause.Decode)), Affected: finding.AffectedOf(l.set, requests),
		Metric: finding.Metric{Name: "tokens of long prompts", Unit: table.Number, Before: usual, After: limit},
	}
	if few := order.Only(list, func(a asked) bool { return a.tokens >= limit }); len(few) < fewPrompts {
		if cost < minFewCost {
			return nil, l.check()
		}
		last := &few[len(few)-1]
		when := " at " + words.At(few[0].at, words.ClockLayout)
		if len(few) > 1 {
			when = fmt.Sprintf(", the first at %s and the last at %s", words.At(few[0].at, words.ClockLayout), words.At(last.at, words.ClockLayout))
		}
		f.Subkind, f.Since, f.Until = finding.LonePrompts, few[0].at, max(last.at, l.set.Requests[last.request].End)
		f.Text = fmt.Sprintf("%s with %s tokens or more to compute came%s; the others have %s on average; %s",
			words.Counted(len(few), "prompt"), words.Thousands(int64(limit)), when, words.Thousands(int64(usual)), l.promptEffect(limit, saved)+beside)
		return []finding.Finding{f}, l.check()
	}
	long := order.Each(tokens, func(x float64) bool { return x >= limit })
	p := findPeriod(long, changepoint.Shares(long, changepoint.Options{Alpha: surely}), func(k int) trace.Time { return list[k].at })
	if cost < minCost && (cost < minSudden || p.since == 0) {
		return nil, l.check()
	}
	f.Since, f.P = p.since, finding.Chance(p.p)
	if p.over {
		f.Until = list[p.to-1].at
	}
	n := changepoint.Count(long).In(p.from, p.to)
	f.Text = fmt.Sprintf("%s %% of the prompts%s have %s tokens or more to compute, the others %s on average; %s",
		words.InPercent(float64(n)/float64(p.to-p.from)), p.when(f.Until), words.Thousands(int64(limit)), words.Thousands(int64(usual)), l.promptEffect(limit, saved)+beside)
	return []finding.Finding{f}, l.check()
}

// besideLong says how much longer tokens take while requests with long prompts are decoded, and returns how much longer each request took, in ns.
func (l *Limits) besideLong(limit float64) (text string, extra map[int]int64) {
	if l.ranks == nil {
		return "", nil
	}
	from, to, _ := l.set.Bounds()
	bulk := load.BulkOf(l.set)
	var list []*request.Request
	for i := range l.set.AllRequests() {
		if r := &l.set.Requests[i]; bulk.Holds(r) {
			list = append(list, r)
		}
	}
	found := work.FindBeside(l.ranks, work.Observe(l.ranks, list, from, to).Decode, func(r int) float64 {
		if tokens := float64(l.set.Requests[r].Metrics.PrefillTokens()); tokens >= limit {
			return tokens
		}
		return 0
	})
	extra = map[int]int64{}
	for i := range found {
		f := &found[i]
		for r, ns := range f.Extra {
			extra[r] += int64(ns)
		}
		if where := ""; text == "" || f.Together {
			if f.Together {
				where = " on all ranks, which take their steps together"
			}
			text = fmt.Sprintf("; while they are decoded, a token of the others takes %s%s, otherwise %s", words.Nearly(int64(f.With)), where, words.Nearly(int64(f.Without)))
		}
	}
	return text, extra
}

// ComputesLong reports whether a server computes a far longer prompt at any time between from and to, or is still
// working off the backlog, taken to last as long as the prefill itself.
func (l *Limits) ComputesLong(from, to trace.Time) bool {
	_, tokens := l.asked()
	limit, _ := longFrom(tokens)
	return limit > 0 && slices.ContainsFunc(l.servers, func(v *server) bool {
		return v.location.Role != request.Decode && slices.ContainsFunc(v.intervals[prefilling], func(x stateInterval) bool {
			return float64(l.set.Requests[x.request].Metrics.PrefillTokens()) >= limit && x.time.From <= to && x.time.To+(x.time.To-x.time.From) >= from
		})
	})
}

// promptEffect says how long the prefills of long prompts take, and which other requests they hold up. saved is what
// each request would save, in ns.
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

// longFrom returns the number of tokens from which prompts are far longer than the others, and the mean of the
// others; 0 if none are.
func longFrom(tokens []float64) (limit, usual float64) {
	for _, limit := range [...]float64{changepoint.TailLimit(tokens), outliersFrom(tokens)} {
		below, sum, n := 0.0, 0.0, 0
		for _, x := range tokens {
			if x < limit {
				below, sum, n = max(below, x), sum+x, n+1
			}
		}
		if long := len(tokens) - n; n > 0 && limit >= apart*below && float64(long) <= maxLong*float64(len(tokens)) && (long >= fewPrompts || limit == outliersFrom(tokens)) {
			return limit, sum / float64(n)
		}
	}
	return 0, 0
}

// outliersFrom returns the number above the widest gap among the fewPrompts largest ones, if it is far beyond nearly
// all others, or else 0.
func outliersFrom(tokens []float64) (limit float64) {
	if len(tokens) <= fewPrompts {
		return 0
	}
	sorted, widest := slices.Sorted(slices.Values(tokens)), 0.0
	beyond := farBeyond * sorted[int(nearlyAllOf*float64(len(sorted)))]
	for i := len(sorted) - fewPrompts + 1; i < len(sorted); i++ {
		if gap := sorted[i] / sorted[i-1]; sorted[i] >= beyond && gap > widest {
			limit, widest = sorted[i], gap
		}
	}
	return limit
}

// shorten replays what a server computed with long prompts as short as the others, and adds what each request would
// save, in ns. The server computes one batch after another. A batch begins as soon as the one before it is over and
// one of its requests has arrived. A batch that waited for something else most of the time still waits.
func (v *server) shorten(s *request.Set, limit, usual float64, saved map[int]int64) {
	list := v.prompts(s)
	prefills := make([]load.Prefill, len(list))
	for i := range list {
		prefills[i] = list[i].Prefill
	}
	ahead, last := trace.Time(0), trace.Time(0) // how much earlier the server would be; when the last batch ended
	next, under := 0, []*prompt(nil)            // first prompt that begins later, and those in progress
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
		less := 0.0 // tokens that the batch would be shorter
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

// decodes finds the requests in the batch of a server, which continue when no prompt is computed.
type decodes struct {
	v     *server
	next  int   // index of the next interval in which a request runs
	under []int // intervals in progress
}

// during returns the requests that run from from to to. Later calls must ask for later times.
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

// prompts returns the prefills of a server, sorted by start.
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
