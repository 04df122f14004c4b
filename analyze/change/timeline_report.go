package change

import (
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A MarkedTimeline is a timeline to show, with the changes that are marked on it.
type MarkedTimeline struct {
	*load.Timeline
	Changes *Changes // in the text; nil are none
}

// A timelineRow is one series in one bucket.
type timelineRow struct{ series, bucket int32 }

// Report makes a table of the timeline: a row per place and bucket. What stages
// take is in CSV and JSON only, as the table would be too wide otherwise.
func (t MarkedTimeline) Report() *table.Table {
	rows := make([]timelineRow, 0, len(t.Series)*t.N())
	for s := range t.Series {
		for b := range t.Series[s].Points {
			rows = append(rows, timelineRow{int32(s), int32(b)})
		}
	}
	series := func(r *timelineRow) *load.Series { return &t.Series[r.series] }
	point := func(r *timelineRow) *load.Point { return &t.Series[r.series].Points[r.bucket] }
	fields := place.WhereColumns(func(r *timelineRow) *place.Where { return &series(r).Where })
	fields = append(fields,
		table.TextColumn("lead", "yes: the rank stands for those that do the same work beside it, and the role is the sum of such", func(r *timelineRow) string {
			if series(r).Lead {
				return "yes"
			}
			return ""
		}),
		table.TimeColumn("time", "start of the bucket", func(r *timelineRow) trace.Time { return t.Start(int(r.bucket)) }),
		table.NsColumn("length", "of the part of the bucket between the first and the last request", func(r *timelineRow) int64 {
			from, to := t.Bounds(int(r.bucket))
			return int64(to - from)
		}),
		table.CountColumn("arrivals", "requests that arrived", func(r *timelineRow) int64 { return point(r).Arrivals }),
		table.NumberColumn("running", "requests that were computed, on average; of all: that were under way", func(r *timelineRow) float64 { return point(r).Running }),
		table.NumberColumn("queued", "requests that waited for a batch, memory or their other half, on average", func(r *timelineRow) float64 { return point(r).Queued }),
		table.NumberColumn("transferring", "requests whose KV cache was moved, on average", func(r *timelineRow) float64 { return point(r).Transferring }),
		table.CountColumn("output tokens", "tokens that came out", func(r *timelineRow) int64 { return point(r).Output }),
		table.CountColumn("prompt tokens", "tokens of prompts that were computed", func(r *timelineRow) int64 { return point(r).Prefill }),
		table.ShareColumn("busy", "of the time, prefilling; else running requests, of the most that ran at once on a rank of the role", func(r *timelineRow) float64 { return point(r).Busy }),
		table.ShareColumn("share", "of the role's arrivals", func(r *timelineRow) float64 { return point(r).Share }),
		table.NumberColumn("imbalance", "most running requests of a lead rank over the mean of all", func(r *timelineRow) float64 { return point(r).Imbalance }),
	)
	if len(t.Series) > 0 && t.Series[0].Good != nil {
		fields = append(fields, goodColumns(series)...)
	}
	for k, stage := range t.Stages {
		fields = append(fields, spreadColumns(stage, func(r *timelineRow) []load.Spread { return series(r).Stages[k] })...)
	}
	fields = append(fields, spreadColumns("ttft", func(r *timelineRow) []load.Spread { return series(r).TTFT })...)
	fields = append(fields, spreadColumns("tpot", func(r *timelineRow) []load.Spread { return series(r).TPOT })...)
	r := table.New("sgtrace.report.timeline/v1", "Timeline", rows, fields)
	for _, note := range t.Notes() {
		r.Note("%s", note)
	}
	return r
}

// goodColumns are the columns of requests that met an SLO.
func goodColumns(series func(*timelineRow) *load.Series) []table.Field[timelineRow] {
	of := func(r *timelineRow) (g load.Good, known bool) {
		if good := series(r).Good; good != nil {
			return good[r.bucket], true
		}
		return load.Good{}, false
	}
	return []table.Field[timelineRow]{
		table.CountColumn("met slo", "requests that arrived and meet the SLO", func(r *timelineRow) int64 {
			if g, known := of(r); known {
				return g.Met
			}
			return request.Unknown
		}),
		{Column: table.Column{Name: "goodput", Unit: table.Share, Doc: "their part of the requests that arrived and met or missed it"}, Cell: func(r *timelineRow) table.Cell {
			g, _ := of(r)
			return table.ShareCell(g.Met, g.Judged)
		}},
	}
}

// spreadColumns are the columns of how long something took.
func spreadColumns(name string, of func(*timelineRow) []load.Spread) []table.Field[timelineRow] {
	at := func(r *timelineRow) load.Spread {
		if spreads := of(r); spreads != nil {
			return spreads[r.bucket]
		}
		return load.Spread{}
	}
	known := func(s load.Spread, ns int64) int64 {
		if s.N == 0 {
			return request.Unknown
		}
		return ns
	}
	fields := []table.Field[timelineRow]{
		table.CountColumn(name+" n", "how many "+name+" began", func(r *timelineRow) int64 { return int64(at(r).N) }),
		table.NsColumn(name+" p50", "median "+name+", nearest rank", func(r *timelineRow) int64 { return known(at(r), at(r).P50) }),
		table.NsColumn(name+" p99", "99th percentile of "+name+", nearest rank", func(r *timelineRow) int64 { return known(at(r), at(r).P99) }),
	}
	for i := range fields {
		fields[i].Detail = true
	}
	return fields
}
