package logged

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// stepTime is how long a token of one request took in each bucket, in s: running requests by
// tokens per second. NaN where a rank did not decode.
func (l *Logged) stepTime(r *Rank) []float64 {
	running, rate := l.curve(r, series.Running), l.curve(r, series.Generation)
	prefilled := r.points[series.NewTokens]
	out := make([]float64, len(rate))
	for b := range out {
		out[b] = math.NaN()
		// Of a unified server, prefills stop decoding: such buckets say nothing of steps.
		if prefilled != nil && prefilled[b].sum > 0 && r.Where.Role != request.Decode {
			continue
		}
		if running[b] >= 1 && rate[b] > 0 && r.points[series.Generation][b].n > 1 {
			out[b] = running[b] / rate[b]
		}
	}
	return out
}

// muchLonger is by how much steps take longer, to be more than the sizes of batches explain.
const muchLonger = 1.25

// Slower finds decode servers whose tokens take longer from some time on, or longer than those of
// their peers with batches that are no larger.
func (l *Logged) Slower() ([]finding.Finding, finding.Judged) {
	judged := l.judged("logged decode speed")
	if l.Grid.N() < fewBuckets {
		return nil, judged
	}
	var out []finding.Finding
	for i := range l.Ranks {
		if f, ok := l.becameSlower(&l.Ranks[i]); ok {
			out = append(out, f)
		}
	}
	return append(l.alike(out), l.slowerThanPeers()...), judged
}

// becameSlower finds a rank whose tokens take longer from some time on.
func (l *Logged) becameSlower(r *Rank) (f finding.Finding, ok bool) {
	if !r.has(series.Generation) || !r.has(series.Running) {
		return f, false
	}
	all, running := l.stepTime(r), l.curve(r, series.Running)
	var steps, batch []float64
	var buckets []int
	for b, v := range all {
		if !math.IsNaN(v) {
			steps, batch, buckets = append(steps, v), append(batch, running[b]), append(buckets, b)
		}
	}
	if len(steps) < fewBuckets {
		return f, false
	}
	list := changepoint.Levels(steps, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		return middle(steps[k:to]) > muchLonger*middle(steps[from:k]) && mean(batch[k:to]) < 1.1*mean(batch[from:k])
	}})
	for _, c := range list {
		before, after := middle(steps[c.From:c.At]), middle(steps[c.At:c.To])
		if after < muchLonger*before || mean(batch[c.At:c.To]) > 1.1*mean(batch[c.From:c.At]) {
			continue
		}
		f = finding.Finding{Topic: "decode speed", At: r.Where, Since: l.Grid.Start(buckets[c.At]), P: finding.Chance(c.P), Cost: (1 - before/after) * float64(c.To-c.At) / float64(len(steps)),
			Metric: finding.Metric{Name: "time per token", Unit: table.Duration, Before: before * 1e9, After: after * 1e9}}
		if c.To < len(steps) {
			f.Until = l.Grid.Start(buckets[c.To])
		}
		f.Text = fmt.Sprintf("since %s, a token takes %s on %s, %s before, with batches that are no larger", clock(f.Since),
			words.Nearly(int64(after*1e9)), r.Where.String(), words.Nearly(int64(before*1e9)))
		f.Evidence = append(f.Evidence, finding.Sentence("running requests: %s before, %s after", words.ThreeDigits(mean(batch[c.From:c.At])), words.ThreeDigits(mean(batch[c.At:c.To]))))
		return f, true
	}
	return f, false
}

// slowerThanPeers finds servers of a role whose tokens take longer than those of the others.
func (l *Logged) slowerThanPeers() (out []finding.Finding) {
	for i := range l.Ranks {
		r := &l.Ranks[i]
		var others []*Rank
		for k := range l.Ranks {
			if o := &l.Ranks[k]; o.Where.Role == r.Where.Role && o.Server != r.Server {
				others = append(others, o)
			}
		}
		if len(others) == 0 || !r.has(series.Generation) || !r.has(series.Running) {
			continue
		}
		if f, ok := l.slowerThan(r, others); ok {
			out = append(out, f)
		}
	}
	return l.alike(out)
}

// slowerThan compares a rank with those of other servers, where its batch is no larger.
func (l *Logged) slowerThan(r *Rank, others []*Rank) (f finding.Finding, ok bool) {
	own, running := l.stepTime(r), l.curve(r, series.Running)
	var ratios []float64
	times := make([][]float64, len(others))
	batches := make([][]float64, len(others))
	for k, o := range others {
		times[k], batches[k] = l.stepTime(o), l.curve(o, series.Running)
	}
	for b, v := range own {
		if math.IsNaN(v) {
			continue
		}
		var peers []float64
		for k := range others {
			if !math.IsNaN(times[k][b]) && batches[k][b] >= running[b]/1.1 {
				peers = append(peers, times[k][b])
			}
		}
		if len(peers) > 0 {
			ratios = append(ratios, v/middle(peers))
		}
	}
	if len(ratios) < fewBuckets {
		return f, false
	}
	slower := 0
	for _, x := range ratios {
		if x > 1 {
			slower++
		}
	}
	p := atLeast(slower*min(20, len(ratios))/len(ratios), min(20, len(ratios)), 0.5)
	ratio := middle(ratios)
	if ratio < muchLonger || p > surely {
		return f, false
	}
	f = finding.Finding{Topic: "decode speed", At: r.Where, P: finding.Chance(p), Cost: 1 - 1/ratio, Metric: finding.Metric{Name: "time per token by that of peers", Before: 1, After: ratio}}
	f.Text = fmt.Sprintf("a token takes %s times as long on %s as on the other servers of its role, with batches that are no larger", words.ThreeDigits(ratio), r.Where.String())
	f.Evidence = append(f.Evidence, finding.Sentence("it does in %d of %d intervals of %s", slower, len(ratios), words.Nearly(l.Grid.Bucket)))
	return f, true
}

// middle is the median.
func middle(list []float64) float64 {
	s := slices.DeleteFunc(slices.Clone(list), math.IsNaN)
	if len(s) == 0 {
		return math.NaN()
	}
	slices.Sort(s)
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}
