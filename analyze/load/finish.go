package load

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// finish makes the series: everywhere, then every role with its ranks.
func (b *timelineBuilder) finish() {
	b.all.level(b.Timeline, 0)
	for i := range b.all.points {
		p := &b.all.points[i]
		p.Queued, p.Transferring, p.Busy = math.NaN(), math.NaN(), math.NaN()
	}
	all := b.series(b.all)
	all.TTFT, all.TPOT = spreads(b.N(), b.all.ttft), spreads(b.N(), b.all.tpot)
	b.Series = append(b.Series, all)
	for _, role := range request.ServingRoles {
		var of, leads []*meter
		most := 0
		for _, m := range b.meters {
			if m.location.Role == role && m.parts > 0 {
				of = append(of, m)
				now, _, _ := AtOnce(m.computing)
				most = max(most, now)
			}
		}
		for _, m := range of {
			m.level(b.Timeline, most)
			if m.lead {
				leads = append(leads, m)
			}
		}
		if len(of) == 0 {
			continue
		}
		whole := b.roles[role]
		b.sumUp(whole, leads)
		if b.brief {
			b.Series = append(b.Series, b.series(whole))
		} else {
			b.Series = append(b.Series, b.series(whole, of...))
		}
		for _, m := range of {
			b.Series = append(b.Series, b.series(m))
		}
	}
	addTokensOf(b.all, b.roles[:])
}

// level turns sums into means. most is the most requests that ran at once on any rank of the role.
func (m *meter) level(t *Timeline, most int) {
	var totals [noState][]int64
	for s, l := range m.loads {
		totals[s] = l.Totals()
	}
	for _, iv := range request.Union(m.computing) {
		m.busy.Add(iv.From, iv.To)
	}
	m.computing = nil
	busy := m.busy.Totals()
	for i := range m.points {
		from, to := t.bounds(i)
		ns := float64(to - from)
		p := &m.points[i]
		p.Running = distribution.Ratio(float64(totals[StateRunning][i]), ns)
		p.Queued = distribution.Ratio(float64(totals[stateQueued][i]), ns)
		p.Transferring = distribution.Ratio(float64(totals[stateTransferring][i]), ns)
		p.Busy = Busy(m.location.Role, p.Running, distribution.Ratio(float64(busy[i]), ns), most)
		p.Share, p.Imbalance = math.NaN(), math.NaN()
		if !m.prompts {
			p.Prefill = request.Unknown
		}
	}
}

// sumUp adds up the lead ranks of a role, and sets their shares of it.
func (b *timelineBuilder) sumUp(role *meter, leads []*meter) {
	for i := range role.points {
		p := &role.points[i]
		p.Share, p.Imbalance, p.Prefill = math.NaN(), math.NaN(), request.Unknown
		most := 0.0
		for _, m := range leads {
			of := &m.points[i]
			p.Running += of.Running
			p.Queued += of.Queued
			p.Transferring += of.Transferring
			p.Busy += of.Busy / float64(len(leads))
			p.Output += of.Output
			if of.Prefill != request.Unknown {
				p.Prefill = max(0, p.Prefill) + of.Prefill
			}
			most = max(most, of.Running)
		}
		if len(leads) < 2 {
			continue
		}
		p.Imbalance = distribution.Ratio(most*float64(len(leads)), p.Running)
		for _, m := range leads {
			m.points[i].Share = distribution.Ratio(float64(m.points[i].Arrivals), float64(p.Arrivals))
		}
	}
}

// addTokensOf adds up the tokens of all roles.
func addTokensOf(all *meter, roles []*meter) {
	for i := range all.points {
		p := &all.points[i]
		p.Prefill = request.Unknown
		for _, m := range roles {
			p.Output += m.points[i].Output
			if prefill := m.points[i].Prefill; prefill != request.Unknown {
				p.Prefill = max(0, p.Prefill) + prefill
			}
		}
	}
}

// series returns the series of a place. Its stages include those of the places that it consists of.
func (b *timelineBuilder) series(m *meter, of ...*meter) Series {
	s := Series{Location: m.location, Points: m.points, Stages: make([][]Spread, len(m.stages)), Lead: m.lead}
	for k := range m.stages {
		samples := [][]timed{m.stages[k]}
		for _, part := range of {
			samples = append(samples, part.stages[k])
		}
		s.Stages[k] = spreads(b.N(), samples...)
	}
	return s
}

// spreads summarizes samples by bucket; nil if there are none.
func spreads(buckets int, lists ...[]timed) []Spread {
	next := make([]int, buckets+1) // where the next sample of a bucket goes
	total := 0
	for _, samples := range lists {
		total += len(samples)
		for _, s := range samples {
			next[s.bucket+1]++
		}
	}
	if total == 0 {
		return nil
	}
	for i := range buckets {
		next[i+1] += next[i]
	}
	sorted := memory.Make[int64](total)
	for _, samples := range lists {
		for _, s := range samples {
			sorted[next[s.bucket]] = s.ns
			next[s.bucket]++
		}
	}
	out := make([]Spread, buckets)
	from := 0
	for i := range out {
		of := sorted[from:next[i]]
		from = next[i]
		if len(of) > 0 {
			slices.Sort(of)
			out[i] = Spread{N: len(of), P50: request.NearestRank(of, 50), P99: request.NearestRank(of, 99)}
		}
	}
	return out
}

// An outcome is what a thread computed for a part.
type outcome struct {
	prefills []trace.Time     // ends of prefills
	steps    []trace.Time     // ends of steps that each yield tokens
	decode   request.Interval // from the first decode step to the last
}

// add notes a stage.
func (o *outcome) add(stage *request.Row) {
	switch stage.Means {
	case request.Prefilling:
		o.prefills = append(o.prefills, stage.End)
	case request.Stepping, request.Prebuilt:
		o.steps = append(o.steps, stage.End)
	case request.Answering:
		if o.decode == (request.Interval{}) {
			o.decode = request.Interval{From: stage.Start, To: stage.End}
		}
		o.decode.To = max(o.decode.To, stage.End)
	}
}

// addTokens counts the tokens of a part where they came out, in the way of request.Set.TokenTimes, and
// those of its prompt where it had been computed. With speculation, a step yields several: all tokens
// of a finished request are divided evenly among its steps. If steps are not traced, the tokens are
// spread over the time of decoding.
func (b *timelineBuilder) addTokens(p *request.Part, m *meter, o *outcome) {
	if prompt := p.PromptTokens - max(0, p.CachedTokens); p.PromptTokens >= 0 && len(o.prefills) > 0 {
		m.prompts = true
		m.points[b.At(o.prefills[0])].Prefill += max(0, prompt)
	}
	tokens := p.CompletionTokens
	switch {
	case p.Role == request.Prefill:
		return // the decode side counts its only token
	case len(o.steps) == 0 && tokens > 1 && o.decode.To > o.decode.From:
		b.spreadTokens(m, o.decode, tokens-1)
		tokens = 1
	}
	steps := o.steps
	if p.Role != request.Decode {
		steps = append(o.prefills, steps...)
	}
	n := int64(len(steps))
	tokens = max(tokens, n)
	for i, end := range steps {
		m.points[b.At(end)].Output += int64(i+1)*tokens/n - int64(i)*tokens/n
	}
}

// addBareTokens counts the tokens of a part without stages: those of the prompt, and the first one,
// when the server says that it came out, and the rest evenly until the end.
func (b *timelineBuilder) addBareTokens(p *request.Part, m *meter) {
	if p.TTFT < 0 || p.CompletionTokens < 1 {
		return
	}
	o := outcome{prefills: []trace.Time{p.Start + trace.Time(p.TTFT)}}
	o.decode = request.Interval{From: o.prefills[0], To: p.End}
	b.addTokens(p, m, &o)
}

// spreadTokens counts tokens that came out evenly over an interval.
func (b *timelineBuilder) spreadTokens(m *meter, over request.Interval, tokens int64) {
	ns := float64(over.To - over.From)
	until := func(t trace.Time) int64 { return int64(float64(tokens) * float64(t-over.From) / ns) }
	cut := b.within(over.From, over.To)
	for from := cut.From; from < cut.To; {
		at := b.At(from)
		to := min(cut.To, b.Start(at)+trace.Time(b.Bucket))
		m.points[at].Output += until(to) - until(from)
		from = to
	}
}

// AtOnce returns the largest number of intervals that overlap, when it is first reached, and the mean number at the times of
// an interval. An interval that ends when another begins does not overlap it, and empty ones overlap none.
func AtOnce(intervals []request.Interval) (most int, at trace.Time, mean float64) {
	starts, ends := memory.Make[trace.Time](len(intervals))[:0], memory.Make[trace.Time](len(intervals))[:0]
	for _, iv := range intervals {
		if iv.From < iv.To {
			starts, ends = append(starts, iv.From), append(ends, iv.To)
		}
	}
	slices.Sort(starts)
	slices.Sort(ends)
	over, last, all := 0, trace.Time(0), 0.0
	pass := func(to trace.Time, now int) {
		all, mean, last = all+float64(now)*float64(to-last), mean+float64(now*now)*float64(to-last), to
	}
	for i, from := range starts {
		for ; ends[over] <= from; over++ {
			pass(ends[over], i-over)
		}
		pass(from, i-over)
		if now := i + 1 - over; now > most {
			most, at = now, from
		}
	}
	for ; over < len(ends); over++ {
		pass(ends[over], len(ends)-over)
	}
	return most, at, distribution.Ratio(mean, all)
}

// Busy returns how much of its capacity a place uses, given the mean number of running requests, and
// the share of the time in which at least one ran. A server that prefills is busy while it does. One
// that decodes gains capacity with the batch, so it is busy in proportion to the most requests that
// ever ran at once on a place like it; NaN if that was never more than one.
func Busy(role request.Role, running, covered float64, most int) float64 {
	switch {
	case role == request.Prefill || role == request.Encoder:
		return covered
	case most < 2:
		return math.NaN()
	}
	return running / float64(most)
}

// WaitByChance returns how long a request waits on average, in ns, for a place that works on one at a time and is busy
// for the given share of the time, if requests arrive at random (the formula of Pollaczek and Khinchine).
func WaitByChance(busy float64, work []request.Interval) float64 {
	sum, squares := 0.0, 0.0
	for _, w := range work {
		ns := float64(w.To - w.From)
		sum, squares = sum+ns, squares+ns*ns
	}
	return busy / (1 - busy) * squares / (2 * max(1, sum))
}
