package tail

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
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
	Cause            cause.Cause
	Mean, SlowMean   int64
	Share, SlowShare float64
}

// disaggregated reports whether a was prefilled on one server and decoded on
// another, and when its first token came.
func (t *Tail) disaggregated(a *cause.Attribution) bool {
	prefill, decode := false, false
	for _, p := range t.set.PartsOf(&t.set.Requests[a.Request]) {
		prefill = prefill || t.set.Parts[p].Role == request.Prefill
		decode = decode || t.set.Parts[p].Role == request.Decode
	}
	return prefill && decode && a.First.Total() > 0
}

func (t *Tail) disaggregation() *Disaggregation {
	var list []*cause.Attribution
	for i := range t.List {
		if t.disaggregated(&t.List[i]) {
			list = append(list, &t.List[i])
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(x, y *cause.Attribution) int { return cmp.Compare(x.First.Total(), y.First.Total()) })
	d := &Disaggregation{N: len(list), Percent: t.Options.Percent}
	rank := (d.Percent*d.N+99)/100 - 1
	from := max(0, min(rank, d.N-fewSlow))
	d.Slow, d.Value = d.N-from, list[rank].First.Total()
	var all, slow tailGroup
	for i, a := range list {
		u := tailUnit{n: 1, sum: a.First}
		// Sizes do not matter here: nothing is compared.
		u.sum[cause.Prefill] += u.sum[cause.PromptSize] + u.sum[cause.SharedBatch]
		u.sum[cause.PromptSize], u.sum[cause.SharedBatch] = 0, 0
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

// A side saturates if at least saturates of the time to the first token is spent
// waiting for it, and otherSide times as much as for the other one.
const (
	saturates = 1.0 / 3
	otherSide = 2
)

// judge finds the side that saturates.
func (d *Disaggregation) judge(all *tailGroup) {
	total := float64(max(1, all.sum.Total()))
	d.PrefillWait = float64(all.sum[cause.Intake]+all.sum[cause.Queue]+all.sum[cause.PrefillBootstrap]) / total
	d.DecodeWait = float64(all.sum[cause.DecodeBootstrap]+all.sum[cause.DecodeQueue]) / total
	d.Saturated = request.Other
	switch {
	case d.N < finding.FewCompared:
	case d.PrefillWait >= saturates && d.PrefillWait >= otherSide*d.DecodeWait:
		d.Saturated = request.Prefill
	case d.DecodeWait >= saturates && d.DecodeWait >= otherSide*d.PrefillWait:
		d.Saturated = request.Decode
	}
}

// Verdict says in one sentence which side is saturated.
func (d *Disaggregation) Verdict() string { return d.verdict("The") }

// verdict begins with the article as it is given.
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
	ns := func(name, doc string, of func(*R) int64) table.Field[R] {
		return table.Field[R]{Column: table.Column{Name: name, Unit: table.Duration, Scale: "duration", Doc: doc}, Cell: func(x *R) table.Cell { return table.Cell{N: of(x)} }}
	}
	part := func(name, doc string, of func(*R) float64) table.Field[R] {
		return table.Field[R]{Column: table.Column{Name: name, Unit: table.Share, Doc: doc}, Cell: func(x *R) table.Cell { return table.Cell{Share: of(x)} }}
	}
	r := table.New("sgtrace.report.firsttoken/v1", d.Verdict(), d.Rows, []table.Field[R]{
		{Column: table.Column{Name: "cause", Doc: "in the order of a request's way; docs/METRICS.md defines it"}, Cell: func(x *R) table.Cell { return table.Cell{Text: x.Cause.String()} }},
		ns("mean", "over all requests", func(x *R) int64 { return x.Mean }),
		part("share", "of the time to the first token of all requests", func(x *R) float64 { return x.Share }),
		ns("slow mean", "over the slowest", func(x *R) int64 { return x.SlowMean }),
		part("slow share", "of the time to the first token of the slowest", func(x *R) float64 { return x.SlowShare }),
	})
	r.Note("time to the first token: from the start of the outermost span; slow: the %d slowest of %d (p%d %s)",
		d.Slow, d.N, d.Percent, words.Nearly(d.Value))
	return r
}

func (t *Tail) sidesReport(d *Disaggregation) *table.Table {
	type R = SideRank
	ns := func(name, doc string, of func(*R) int64) table.Field[R] {
		return table.Field[R]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc}, Cell: func(x *R) table.Cell { return table.Cell{N: of(x)} }}
	}
	return table.New("sgtrace.report.sides/v1", "Prefill and decode ranks", d.Ranks, []table.Field[R]{
		{Column: table.Column{Name: "side", Doc: "what the server does"}, Cell: func(x *R) table.Cell { return table.Cell{Text: x.Role.String()} }},
		{Column: table.Column{Name: "rank", Doc: "host and lead rank"}, Cell: func(x *R) table.Cell { return table.TextCell(t.rankName(int32(x.Proc))) }},
		{Column: table.Column{Name: "requests", Unit: table.Count, Doc: "that it worked on"}, Cell: func(x *R) table.Cell { return table.Cell{N: int64(x.Requests)} }},
		{Column: table.Column{Name: "busy", Unit: table.Share, Doc: "of the time, prefilling; else decoding requests, of the most that did at once on a rank of the side"}, Cell: func(x *R) table.Cell { return table.RealCell(x.Busy) }},
		{Column: table.Column{Name: "waiting", Unit: table.Count, Tenths: true, Doc: "requests that waited for it at a time, on average"}, Cell: func(x *R) table.Cell { return table.Cell{N: int64(math.Round(10 * x.Waiting))} }},
		{Column: table.Column{Name: "waited", Unit: table.Duration, Detail: true, Doc: "sum of the waits"}, Cell: func(x *R) table.Cell { return table.Cell{N: x.Waited} }},
		{Column: table.Column{Name: "most", Unit: table.Count, Doc: "requests that waited for it at worst"}, Cell: func(x *R) table.Cell { return table.Cell{N: int64(x.Most)} }},
		{Column: table.Column{Name: "at", Unit: table.Instant, Doc: "when that was first so, Unix time"}, Cell: func(x *R) table.Cell { return table.Cell{N: int64(x.At), Unknown: x.Most == 0} }},
		ns("wait p50", "of the requests' waits for it: median, nearest rank", func(x *R) int64 { return x.P50 }),
		ns("wait p99", "of the requests' waits for it: 99th percentile, nearest rank", func(x *R) int64 { return x.P99 }),
	}).Stay("busy", "wait p50").Leave("most", "at")
}
