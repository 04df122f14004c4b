package analyze

import (
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A MarkedTimeline is a timeline to show, with the changes that are marked on it.
type MarkedTimeline struct {
	*Timeline
	Changes *Changes // in the text; nil are none
}

// A timelineRow is one series in one bucket.
type timelineRow struct{ series, bucket int32 }

// Report makes a table of the timeline: a row per place and bucket. What stages
// take is in CSV and JSON only, as the table would be too wide otherwise.
func (t MarkedTimeline) Report() *Report {
	rows := make([]timelineRow, 0, len(t.Series)*t.Buckets())
	for s := range t.Series {
		for b := range t.Series[s].Points {
			rows = append(rows, timelineRow{int32(s), int32(b)})
		}
	}
	series := func(r *timelineRow) *Series { return &t.Series[r.series] }
	point := func(r *timelineRow) *Point { return &t.Series[r.series].Points[r.bucket] }
	fields := whereColumns(func(r *timelineRow) *Where { return &series(r).Where })
	fields = append(fields,
		textColumn("lead", "yes: the rank stands for those that do the same work beside it, and the role is the sum of such", func(r *timelineRow) string {
			if series(r).Lead {
				return "yes"
			}
			return ""
		}),
		timeColumn("time", "start of the bucket", func(r *timelineRow) trace.Time { return t.Start + trace.Time(int64(r.bucket)*t.Bucket) }),
		nsColumn("length", "of the part of the bucket between the first and the last request", func(r *timelineRow) int64 {
			from, to := t.bounds(int(r.bucket))
			return int64(to - from)
		}),
		countColumn("arrivals", "requests that arrived", func(r *timelineRow) int64 { return point(r).Arrivals }),
		numberColumn("running", "requests that were computed, on average; of all: that were under way", func(r *timelineRow) float64 { return point(r).Running }),
		numberColumn("queued", "requests that waited for a batch, memory or their other half, on average", func(r *timelineRow) float64 { return point(r).Queued }),
		numberColumn("transferring", "requests whose KV cache was moved, on average", func(r *timelineRow) float64 { return point(r).Transferring }),
		countColumn("output tokens", "tokens that came out", func(r *timelineRow) int64 { return point(r).Output }),
		countColumn("prompt tokens", "tokens of prompts that were computed", func(r *timelineRow) int64 { return point(r).Prefill }),
		shareColumn("busy", "part of the time in which something was running", func(r *timelineRow) float64 { return point(r).Busy }),
		shareColumn("share", "of the role's arrivals", func(r *timelineRow) float64 { return point(r).Share }),
		numberColumn("imbalance", "most running requests of a lead rank over the mean of all", func(r *timelineRow) float64 { return point(r).Imbalance }),
	)
	for k, stage := range t.Stages {
		fields = append(fields, spreadColumns(stage, func(r *timelineRow) []Spread { return series(r).Stages[k] })...)
	}
	fields = append(fields, spreadColumns("ttft", func(r *timelineRow) []Spread { return series(r).TTFT })...)
	fields = append(fields, spreadColumns("tpot", func(r *timelineRow) []Spread { return series(r).TPOT })...)
	r := tabulate("sgtrace.report.timeline/v1", "Timeline", rows, fields)
	for _, note := range t.notes() {
		r.note("%s", note)
	}
	return r
}

// spreadColumns are the columns of how long something took.
func spreadColumns(name string, of func(*timelineRow) []Spread) []field[timelineRow] {
	at := func(r *timelineRow) Spread {
		if spreads := of(r); spreads != nil {
			return spreads[r.bucket]
		}
		return Spread{}
	}
	known := func(s Spread, ns int64) int64 {
		if s.N == 0 {
			return request.Unknown
		}
		return ns
	}
	fields := []field[timelineRow]{
		countColumn(name+" n", "how many "+name+" began", func(r *timelineRow) int64 { return int64(at(r).N) }),
		nsColumn(name+" p50", "median "+name+", nearest rank", func(r *timelineRow) int64 { return known(at(r), at(r).P50) }),
		nsColumn(name+" p99", "99th percentile of "+name+", nearest rank", func(r *timelineRow) int64 { return known(at(r), at(r).P99) }),
	}
	for i := range fields {
		fields[i].Detail = true
	}
	return fields
}
