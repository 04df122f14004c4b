package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// Disaggregation is where the time to the first token goes with prefill/decode
// disaggregation, from the start of the outermost span on, and which side it is
// spent waiting for.
type Disaggregation struct {
	N       int   // finished requests with both halves
	Percent int   // where the tail begins
	Value   int64 // ns: that percentile of the time to the first token
	Slow    int   // requests in the tail
	Rows    []FirstTokenShare
	Ranks   []SideRank
	// PrefillWait and DecodeWait are the shares of that time, of all requests
	// together, that are spent waiting for the one side and for the other. Saturated
	// is the side that is waited for; request.Other if it is neither.
	PrefillWait, DecodeWait float64
	Saturated               request.Role
}

// A FirstTokenShare is the part of one cause. Means are over all requests, and
// over those in the tail, in ns.
type FirstTokenShare struct {
	Cause            Cause
	Mean, SlowMean   int64
	Share, SlowShare float64
}

// disaggregated tells whether a was prefilled on one server and decoded on
// another, and when its first token came.
func (t *Tail) disaggregated(a *Attribution) bool {
	prefill, decode := false, false
	for _, p := range t.set.Requests[a.Request].Parts {
		prefill = prefill || t.set.Parts[p].Role == request.Prefill
		decode = decode || t.set.Parts[p].Role == request.Decode
	}
	return prefill && decode && a.First.Total() > 0
}

func (t *Tail) disaggregation() *Disaggregation {
	var list []*Attribution
	for i := range t.list {
		if t.disaggregated(&t.list[i]) {
			list = append(list, &t.list[i])
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(x, y *Attribution) int { return cmp.Compare(x.First.Total(), y.First.Total()) })
	d := &Disaggregation{N: len(list), Percent: t.Options.Percent}
	rank := (d.Percent*d.N+99)/100 - 1
	from := max(0, min(rank, d.N-fewSlow))
	d.Slow, d.Value = d.N-from, list[rank].First.Total()
	var all, slow tailGroup
	for i, a := range list {
		u := tailUnit{n: 1, sum: a.First}
		// Sizes do not matter here: nothing is compared.
		u.sum[CausePrefill] += u.sum[CausePromptSize] + u.sum[CauseSharedBatch]
		u.sum[CausePromptSize], u.sum[CauseSharedBatch] = 0, 0
		all.add(u)
		if i >= from {
			slow.add(u)
		}
	}
	d.divide(&all, &slow)
	d.Ranks = t.sideRanks()
	d.judge(&all)
	return d
}

// divide fills in the rows.
func (d *Disaggregation) divide(all, slow *tailGroup) {
	means, total := all.means()
	slowMeans, slowTotal := slow.means()
	for c := range causeCount {
		if all.sum[c] == 0 {
			continue
		}
		d.Rows = append(d.Rows, FirstTokenShare{
			Cause: c, Mean: means[c], SlowMean: slowMeans[c],
			Share: float64(means[c]) / float64(max(1, total)), SlowShare: float64(slowMeans[c]) / float64(max(1, slowTotal)),
		})
	}
}

// A side saturates if at least saturates of the time to the first token is spent
// waiting for it, and otherSide times as much as for the other one.
const (
	saturates = 1.0 / 3
	otherSide = 2
)

// judge finds the side that saturates.
func (d *Disaggregation) judge(all *tailGroup) {
	total := float64(max(1, all.sum.Total()))
	d.PrefillWait = float64(all.sum[CauseIntake]+all.sum[CauseQueue]+all.sum[CausePrefillBootstrap]) / total
	d.DecodeWait = float64(all.sum[CauseDecodeBootstrap]+all.sum[CauseDecodeQueue]) / total
	d.Saturated = request.Other
	switch {
	case d.N < fewCompared:
	case d.PrefillWait >= saturates && d.PrefillWait >= otherSide*d.DecodeWait:
		d.Saturated = request.Prefill
	case d.DecodeWait >= saturates && d.DecodeWait >= otherSide*d.PrefillWait:
		d.Saturated = request.Decode
	}
}

// Verdict says in one sentence which side saturates.
func (d *Disaggregation) Verdict() string {
	text := "Neither the prefill nor the decode side saturates"
	if d.Saturated != request.Other {
		text = fmt.Sprintf("The %s side saturates", d.Saturated)
	}
	return text + fmt.Sprintf(": of the time to the first token, %.0f %% is waiting for the decode side, %.0f %% for the prefill side",
		100*d.DecodeWait, 100*d.PrefillWait)
}

func (t *Tail) firstTokenReport(d *Disaggregation) *Report {
	type R = FirstTokenShare
	ns := func(name, doc string, of func(*R) int64) field[R] {
		return field[R]{Column{Name: name, Unit: Duration, Scale: "duration", Doc: doc}, func(x *R) Cell { return Cell{N: of(x)} }}
	}
	part := func(name, doc string, of func(*R) float64) field[R] {
		return field[R]{Column{Name: name, Unit: Share, Doc: doc}, func(x *R) Cell { return Cell{Share: of(x)} }}
	}
	r := tabulate("sgtrace.report.firsttoken/v1", d.Verdict(), d.Rows, []field[R]{
		{Column{Name: "cause", Doc: "in the order of a request's way; docs/METRICS.md defines it"}, func(x *R) Cell { return Cell{Text: x.Cause.String()} }},
		ns("mean", "over all requests", func(x *R) int64 { return x.Mean }),
		part("share", "of the time to the first token of all requests", func(x *R) float64 { return x.Share }),
		ns("slow mean", "over the slowest", func(x *R) int64 { return x.SlowMean }),
		part("slow share", "of the time to the first token of the slowest", func(x *R) float64 { return x.SlowShare }),
	})
	r.note("time to the first token: from the start of the outermost span; slow: the %d slowest of %d (p%d %s)",
		d.Slow, d.N, d.Percent, words.Nearly(d.Value))
	return r
}

func (t *Tail) sidesReport(d *Disaggregation) *Report {
	type R = SideRank
	ns := func(name, doc string, of func(*R) int64) field[R] {
		return field[R]{Column{Name: name, Unit: Duration, Doc: doc}, func(x *R) Cell { return Cell{N: of(x)} }}
	}
	return tabulate("sgtrace.report.sides/v1", "Prefill and decode ranks", d.Ranks, []field[R]{
		{Column{Name: "side", Doc: "what the server does"}, func(x *R) Cell { return Cell{Text: x.Role.String()} }},
		{Column{Name: "rank", Doc: "host and lead rank"}, func(x *R) Cell { return textCell(t.rankName(int32(x.Proc))) }},
		{Column{Name: "requests", Unit: Count, Doc: "that it worked on"}, func(x *R) Cell { return Cell{N: int64(x.Requests)} }},
		{Column{Name: "busy", Unit: Share, Doc: "time in which it prefilled, or had requests to decode"}, func(x *R) Cell { return Cell{Share: x.Busy} }},
		{Column{Name: "waiting", Unit: Count, Tenths: true, Doc: "requests that waited for it at a time, on average"}, func(x *R) Cell { return Cell{N: int64(math.Round(10 * x.Waiting))} }},
		{Column{Name: "waited", Unit: Duration, Detail: true, Doc: "sum of the waits"}, func(x *R) Cell { return Cell{N: x.Waited} }},
		{Column{Name: "most", Unit: Count, Doc: "requests that waited for it at worst"}, func(x *R) Cell { return Cell{N: int64(x.Most)} }},
		{Column{Name: "at", Unit: Instant, Doc: "when that was first so, Unix time"}, func(x *R) Cell { return Cell{N: int64(x.At), Unknown: x.Most == 0} }},
		ns("wait p50", "of the requests' waits for it: median, nearest rank", func(x *R) int64 { return x.P50 }),
		ns("wait p99", "of the requests' waits for it: 99th percentile, nearest rank", func(x *R) int64 { return x.P99 }),
	})
}
