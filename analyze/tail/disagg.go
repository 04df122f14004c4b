package tail

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/transfer"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Disaggregation divides the time to the first token under prefill/decode disaggregation, measured from the start of
// the outermost span, and says which side requests wait for.
type Disaggregation struct {
	N       int   // finished requests with both halves
	Percent int   // percentile at which the tail begins
	Value   int64 // ns: that percentile of the time to the first token
	Slow    int   // requests in the tail
	Rows    []FirstTokenShare
	Ranks   []SideRank
	// PrefillWait and DecodeWait are the shares of the total time to the first token of all requests that are spent
	// waiting for either side. Saturated is the side that they wait for, or request.Other for neither.
	PrefillWait, DecodeWait float64
	Saturated               request.Role
}

// A FirstTokenShare is one cause's part of the time to the first token. Means are over all requests and over those in
// the tail, in ns.
type FirstTokenShare struct {
	Cause            cause.Cause
	Mean, SlowMean   int64
	Share, SlowShare float64
}

func (t *Tail) disaggregation() *Disaggregation {
	type first struct {
		of    *cause.Attribution
		total int64
	}
	var list []first
	for i := range cause.Each(t.List) {
		if a := &t.List[i]; transfer.Disaggregated(t.set, a) {
			list = append(list, first{a, a.First.Total()})
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(x, y first) int { return cmp.Compare(x.total, y.total) })
	d := &Disaggregation{N: len(list), Percent: t.Options.Percent}
	rank := (d.Percent*d.N+99)/100 - 1
	from := max(0, min(rank, d.N-fewSlow))
	d.Slow, d.Value = d.N-from, list[rank].total
	var all, slow tailGroup
	parallel.All(func() { d.Ranks = t.sideRanks() }, func() {
		for i, a := range list {
			u := tailUnit{n: 1, sum: a.of.First}
			// No sizes are compared here, so count the parts that size explains as prefill.
			u.sum[cause.Prefill] += u.sum[cause.PromptSize] + u.sum[cause.SharedBatch]
			u.sum[cause.PromptSize], u.sum[cause.SharedBatch] = 0, 0
			all.add(u)
			if i >= from {
				slow.add(u)
			}
		}
		d.divide(&all, &slow)
	})
	d.judge(&all)
	return d
}

// divide fills in the rows.
func (d *Disaggregation) divide(all, slow *tailGroup) {
	means, total := all.means()
	slowMeans, slowTotal := slow.means()
	for c := range cause.Count {
		if all.sum[c] == 0 {
			continue
		}
		d.Rows = append(d.Rows, FirstTokenShare{
			Cause: c, Mean: means[c], SlowMean: slowMeans[c],
			Share: float64(means[c]) / float64(max(1, total)), SlowShare: float64(slowMeans[c]) / float64(max(1, slowTotal)),
		})
	}
}

// A side is saturated if requests spend at least saturates of the time to the first token waiting for it, and
// otherSide times as much as for the other side. One of its ranks is also busy for mostly of its capacity, or else requests wait luck
// times as long for a prefill side as those do that arrive at random, and luck times as many together for a decode rank: every request
// waits until a decode server has prepared for it and a step of the others has ended, but they do so one at a time.
const (
	saturates = 1.0 / 3
	otherSide = 2
	mostly    = 0.8
	luck      = 2
)

// judge decides which side is saturated.
func (d *Disaggregation) judge(all *tailGroup) {
	total := float64(max(1, all.sum.Total()))
	d.PrefillWait = float64(all.sum[cause.Intake]+all.sum[cause.Queue]+all.sum[cause.PrefillBootstrap]) / total
	d.DecodeWait = float64(all.sum[cause.DecodeBootstrap]+all.sum[cause.DecodeQueue]) / total
	d.Saturated = request.Other
	switch {
	case d.N < finding.FewCompared:
	case d.PrefillWait >= saturates && d.PrefillWait >= otherSide*d.DecodeWait && d.full(request.Prefill):
		d.Saturated = request.Prefill
	case d.DecodeWait >= saturates && d.DecodeWait >= otherSide*d.PrefillWait && d.full(request.Decode):
		d.Saturated = request.Decode
	}
}

// full reports whether a rank of a side is busy most of the time, or requests wait for the side longer, or more of them together, than
// chance explains.
func (d *Disaggregation) full(side request.Role) bool {
	waited, byChance := 0.0, 0.0
	for i := range d.Ranks {
		r := &d.Ranks[i]
		if r.Role != side {
			continue
		}
		if r.Busy >= mostly || side == request.Decode && r.together >= luck*(1+r.Waiting) {
			return true
		}
		waited, byChance = waited+float64(r.Waited), byChance+float64(r.Requests)*r.chance
	}
	return side == request.Prefill && waited > luck*byChance
}

// Verdict says in one sentence which side is saturated.
func (d *Disaggregation) Verdict() string { return d.verdict("The") }

// verdict is Verdict with the given article for the saturated side.
func (d *Disaggregation) verdict(article string) string {
	text := "Neither the prefill nor the decode side is saturated"
	if d.Saturated != request.Other {
		text = fmt.Sprintf("%s %s side is saturated", article, d.Saturated)
	}
	return text + fmt.Sprintf(": requests spend %.0f %% of the time to first token waiting for decode, and %.0f %% waiting for prefill",
		100*d.DecodeWait, 100*d.PrefillWait)
}

func (t *Tail) firstTokenReport(d *Disaggregation) *table.Table {
	type R = FirstTokenShare
	r := table.New("sgtrace.report.firsttoken/v1", d.Verdict(), d.Rows, []table.Field[R]{
		table.TextColumn("cause", "cause, in the order in which a request meets them; docs/METRICS.md defines it", func(x *R) string { return x.Cause.String() }),
		table.TookColumn("mean", "mean over all requests", func(x *R) int64 { return x.Mean }),
		table.ShareColumn("share", "share of the time to first token of all requests", func(x *R) float64 { return x.Share }),
		table.TookColumn("slow mean", "mean over the slowest requests", func(x *R) int64 { return x.SlowMean }),
		table.ShareColumn("slow share", "share of the time to first token of the slowest requests", func(x *R) float64 { return x.SlowShare }),
	})
	r.Note("time to the first token: from the start of the outermost span; slow: the %d slowest of %d (p%d %s)",
		d.Slow, d.N, d.Percent, words.Nearly(d.Value))
	return r
}

func (t *Tail) sidesReport(d *Disaggregation) *table.Table {
	type R = SideRank
	return table.New("sgtrace.report.sides/v1", "Prefill and decode ranks", d.Ranks, []table.Field[R]{
		table.TextColumn("side", "role of the server: prefill or decode", func(x *R) string { return x.Role.String() }),
		table.TextColumn("rank", "host and lead rank", func(x *R) string { return t.set.RankName(x.Proc) }),
		table.CountColumn("requests", "number of requests that it worked on", func(x *R) int64 { return int64(x.Requests) }),
		table.ShareColumn("busy", "prefill: share of time spent on prefill; decode: average decoding requests divided by the most at once on any rank of the side", func(x *R) float64 { return x.Busy }),
		{Column: table.Column{Name: "waiting", Unit: table.Count, Tenths: true, Doc: "average number of requests waiting for it"}, Cell: func(x *R) table.Cell { return table.Cell{N: int64(math.Round(10 * x.Waiting))} }},
		table.NsColumn("waited", "total wait", func(x *R) int64 { return x.Waited }).InDetail(),
		table.CountColumn("most", "most requests waiting for it at one time", func(x *R) int64 { return int64(x.Most) }),
		{Column: table.Column{Name: "at", Unit: table.Instant, Doc: "when that maximum was first reached, Unix time"}, Cell: func(x *R) table.Cell { return table.Cell{N: int64(x.At), Unknown: x.Most == 0} }},
		table.NsColumn("wait p50", "wait of a request for it: median, nearest rank", func(x *R) int64 { return x.P50 }),
		table.NsColumn("wait p99", "wait of a request for it: 99th percentile, nearest rank", func(x *R) int64 { return x.P99 }),
	}).Stay("busy", "wait p50").Leave("most", "at")
}

// A SideRank is the load of a lead rank of the prefill or the decode side, from all parts of requests, whether or not
// they finished.
type SideRank struct {
	Role     request.Role
	Proc     int // index into Set.Procs
	Requests int
	// Busy is the share of its capacity that the rank used between the first and the last request of its side; see
	// [load.Busy].
	Busy float64
	// Waiting is the mean number of requests that waited for the rank over that time, and Most the largest number,
	// first reached at the instant At.
	Waiting  float64
	Waited   int64 // ns: sum of the waits
	Most     int
	At       trace.Time
	P50, P99 int64 // ns: waits per request

	chance   float64 // ns: how long a request that arrives at random waits for it on average
	together float64 // mean number of requests that wait while one does; 1 and Waiting more if they arrive at random
}

// A sideLoad collects the waits for a lead rank, and its work.
type sideLoad struct {
	role        request.Role
	busy, waits []request.Interval
	perRequest  []int64 // ns: sum of the waits of each request
}

// sideRanks measures the lead ranks of both sides, in the order of Set.Procs.
func (t *Tail) sideRanks() []SideRank {
	s := t.set
	loads := make([]sideLoad, len(s.Procs))
	var during [request.Other + 1]request.Interval
	for p := range s.AllParts() {
		part := &s.Parts[p]
		lead := s.Lead(part)
		if part.Role != request.Prefill && part.Role != request.Decode || lead == request.None || part.Request == request.None ||
			!request.Plausible(part.Start, part.End) {
			continue
		}
		if d := &during[part.Role]; d.To == 0 {
			*d = request.Interval{From: part.Start, To: part.End}
		} else {
			d.From, d.To = min(d.From, part.Start), max(d.To, part.End)
		}
		loads[s.Threads[lead].Proc].add(s, part, lead)
	}
	var out []SideRank
	var most [request.Other + 1]int
	for proc := range loads {
		role := loads[proc].role
		busy, _, _ := load.AtOnce(loads[proc].busy)
		most[role] = max(most[role], busy)
	}
	for proc := range loads {
		if side := &loads[proc]; len(side.perRequest) > 0 {
			out = append(out, side.measure(proc, during[side.role], most[side.role]))
		}
	}
	return out
}

// add adds the waits and the work of part p.
func (l *sideLoad) add(s *request.Set, p *request.Part, lead int) {
	l.role = p.Role
	waited := int64(0)
	wait := func(from, to trace.Time) {
		if from < to && request.Plausible(from, to) {
			l.waits = memory.Append(l.waits, request.Interval{From: from, To: to})
			waited += int64(to - from)
		}
	}
	stages := s.StagesOf(lead)
	if sent := dispatched(s, p); sent != 0 && len(stages) > 0 && p.Role == request.Prefill {
		wait(sent, s.Row(int(stages[0])).Start)
	}
	for _, i := range stages {
		span := s.Row(int(i))
		switch span.Means {
		case request.Queueing, request.DecodeQueueing, request.ReceivePreparing, request.ReceiveConnecting:
			wait(span.Start, span.End)
		case request.Prefilling, request.PrefillingChunk, request.Answering, request.Stepping:
			if span.Start < span.End && request.Plausible(span.Start, span.End) {
				l.busy = memory.Append(l.busy, request.Interval{From: span.Start, To: span.End})
			}
		}
	}
	l.perRequest = memory.Append(l.perRequest, waited)
}

// dispatched returns when the first thread of a part outside of the scheduler was done with its stages, or 0 if there
// is no such thread.
func dispatched(s *request.Set, p *request.Part) trace.Time {
	var sent trace.Time
	for _, t := range s.ThreadsOf(p) {
		stages := s.StagesOf(t)
		if len(stages) == 0 || s.OnScheduler(t) {
			continue
		}
		sent = order.Earlier(sent, s.Row(int(stages[len(stages)-1])).End)
	}
	return sent
}

// measure sums up the load of a rank over a period. most is the largest number of requests that any rank of its side
// computed at a time.
func (l *sideLoad) measure(proc int, during request.Interval, most int) SideRank {
	r := SideRank{Role: l.role, Proc: proc, Requests: len(l.perRequest)}
	whole := float64(max(1, during.To-during.From))
	running := order.Sum(l.busy, func(iv request.Interval) int64 { return int64(min(iv.To, during.To) - max(iv.From, during.From)) })
	covered := request.NewCoverage(l.busy)
	r.Busy = load.Busy(l.role, float64(running)/whole, float64(covered.Overlap(during.From, during.To))/whole, most)
	r.chance = load.WaitByChance(r.Busy, l.busy)
	r.Most, r.At, r.together = load.AtOnce(l.waits)
	w := distribution.Summarize(l.perRequest)
	r.Waiting, r.Waited, r.P50, r.P99 = float64(w.Total)/whole, w.Total, w.P50, w.P99
	return r
}
