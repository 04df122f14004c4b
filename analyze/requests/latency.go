package requests

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A Latency sums up one duration over all requests, or over the parts of requests on one kind of server.
type Latency struct {
	Of     string // "finished requests", or "decode servers" for parts of requests
	Metric string // "e2e", "ttft", ...
	distribution.Summary
}

// Finished is Latency.Of for requests as users see them.
const Finished = "finished requests"

// Latencies sums up the metrics of all requests, and how long each kind of server worked on them.
type Latencies struct {
	Rows []Latency
	// Unfinished counts the requests that are left out of the rows of finished requests, by status.
	Unfinished map[request.Status]int
}

// MeasureLatencies sums up the metrics of all requests of s.
func MeasureLatencies(s *request.Set) *Latencies {
	l := &Latencies{Unfinished: map[request.Status]int{}}
	var sum distribution.Summarizer
	add := func(of, metric string, values []int64) {
		if len(values) > 0 {
			l.Rows = append(l.Rows, Latency{of, metric, sum.Summarize(values)})
		}
	}
	values := make([][]int64, len(metric.Requests))
	var first []int64
	gateway := false
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		if r.Status != request.Finished {
			l.Unfinished[r.Status]++
			continue
		}
		for k, m := range metric.Requests {
			values[k] = m.Values(values[k], s, r)
		}
		gateway = gateway || r.Gateway != request.None
		first = metric.UserTTFT.Values(first, s, r)
	}
	for k, m := range metric.Requests {
		add(Finished, m.Name, values[k])
	}
	if gateway {
		add(Finished, metric.UserTTFT.Name, first)
	}
	for role := request.Unified; role <= request.Other; role++ {
		server, ttft := partTimes(s, role)
		add(role.String()+" servers", "span", server)
		add(role.String()+" servers", metric.TTFT.Name, ttft)
	}
	return l
}

// partTimes returns the durations of the request spans of a role, and the TTFT that they report.
func partTimes(s *request.Set, role request.Role) (server, ttft []int64) {
	for i := range s.AllParts() {
		p := &s.Parts[i]
		if p.Role != role || p.Root == request.None || s.Kind(p.Root) != request.Root {
			continue
		}
		if p.End >= p.Start {
			server = append(server, int64(p.End-p.Start))
		}
		if p.TTFT >= 0 {
			ttft = append(ttft, p.TTFT)
		}
	}
	return server, ttft
}

// Report makes the table of the latencies.
func (l *Latencies) Report() *table.Table {
	summary := func(l *Latency) *distribution.Summary { return &l.Summary }
	fields := append([]table.Field[Latency]{
		table.TextColumn("of", "what the durations are of: finished requests, or the request spans of one kind of server, whatever the request's status", func(l *Latency) string { return l.Of }),
		table.TextColumn("metric", "name of the metric; docs/METRICS.md defines it", func(l *Latency) string { return l.Metric }),
	}, table.SummaryFields(summary)...)
	r := table.New("sgtrace.report.latency/v1", "Latency", l.Rows, fields)
	var others []string
	for status := request.Aborted; status <= request.Unfinished; status++ {
		if n := l.Unfinished[status]; n > 0 {
			others = append(others, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(others) > 0 {
		r.Note("not among the finished requests: %s", strings.Join(others, ", "))
	}
	table.NoteSamples(r, l.Rows, func(l *Latency) int64 { return int64(l.N) }, func(l *Latency) string { return l.Of + " " + l.Metric })
	return r
}

// Stages are the spans of a set in groups.
type Stages struct {
	By     []Dimension
	Groups []Group // sorted by the dimensions
	// Implausible is the number of spans whose times cannot be right. They are in no group.
	Implausible int
	// Again is the number of spans that were restarted by a retraction, so that they seem to last since the first
	// time. They are in no group, either.
	Again int
}

// A Group is the spans with the same value in every dimension.
type Group struct {
	Key []string // one per dimension; "" is unknown
	distribution.Summary
	// Covered is the time in which at least one span of the group was open, in ns, summed over the requests and cut
	// at their bounds. Ranks that do the same work together count once. It is request.Unknown if no span belongs to a
	// request.
	Covered int64
	// E2E is the denominator for Covered: the total time from start to end of all requests, in ns, or of those with
	// the same status, model, and so on, if whole dimensions divide the requests.
	E2E int64
}

// Report makes the table of the groups.
func (s *Stages) Report() *table.Table {
	var fields []table.Field[Group]
	title := "Stages"
	for i, d := range s.By {
		if d.Name != "stage" {
			title += " by " + d.Name
		}
		fields = append(fields, table.TextColumn(d.Name, d.Doc, func(g *Group) string { return g.Key[i] }).AtMost(table.MaxName))
	}
	summary := func(g *Group) *distribution.Summary { return &g.Summary }
	fields = append(fields, table.SummaryFields(summary)...)
	fields = append(fields, table.Field[Group]{
		Column: table.Column{Name: "share", Unit: table.Share, Doc: "share of the requests' E2E time in which a span of this row was open; rows overlap"},
		Cell: func(g *Group) table.Cell {
			return table.Cell{Share: float64(g.Covered) / float64(g.E2E), Unknown: g.Covered == request.Unknown || g.E2E == 0}
		},
	})
	r := table.New("sgtrace.report.stages/v1", title, s.Groups, fields)
	if len(s.Groups) == 0 {
		r.Note("no stages were traced, only whole requests or spans of other services")
	}
	table.NoteFewSamples(r, s.Groups, func(g *Group) int64 { return int64(g.N) }, func(g *Group) string { return strings.Join(g.Key, " ") })
	if s.Implausible > 0 {
		r.Note("%s left out because of impossible times", words.Counted(s.Implausible, "span"))
	}
	if s.Again > 0 {
		r.Note("%s left out: they restarted after a retraction, and their recorded time includes the first attempt", words.Counted(s.Again, "span"))
	}
	return r
}
