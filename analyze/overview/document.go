package overview

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Document returns the overview for every output format.
func (o *Overview) Document() *document.Document {
	list := o.list()
	d := &document.Document{
		Schema: "sgtrace.report.summary/v2", Inputs: o.Files, Warnings: o.Warnings, Findings: o.Findings, Again: list.Again(),
		Text: o.writeText, Markdown: o.writeMarkdown,
	}
	d.Add(o.loadReport(), o.serverReport(), o.profileReport(), o.kernelReport(), o.clockReport(), latencyReport(o.Latencies), o.Lives.Report(), list.sumReport(), list.FinderReport())
	if o.Logged != nil {
		d.Add(o.Logged.Reports()...)
		d.Add(o.Metrics.Percentiles(), o.Metrics.Runs())
	}
	if o.Goodput != nil {
		d.Add(o.Goodput.Report(), o.Goodput.CauseReport(), o.Goodput.RankReport())
	}
	d.AddMain(list.Report())
	return d
}

// loadReport is a single row: the period, and the counts and rates of all requests. Counts are unknown without
// requests.
func (o *Overview) loadReport() *table.Table {
	n := func(status request.Status) func(**Overview) int64 {
		return func(o **Overview) int64 { return (*o).count(int64((*o).Statuses[status])) }
	}
	rate := func(of func(*Overview) float64) func(**Overview) float64 {
		return func(o **Overview) float64 { return math.Round(of(*o)*1e6) / 1e6 }
	}
	return table.New("sgtrace.report.summary.load/v1", "Requests", []*Overview{o}, []table.Field[*Overview]{
		{Column: table.Column{Name: "from", Unit: table.Instant, Doc: "start of the first request, ignoring requests far from all others; without requests, of the first work on devices"},
			Cell: func(o **Overview) table.Cell { return table.Cell{N: int64((*o).From), Unknown: (*o).From == 0} }},
		{Column: table.Column{Name: "to", Unit: table.Instant, Doc: "end of the last request; without requests, of the last work on devices"},
			Cell: func(o **Overview) table.Cell { return table.Cell{N: int64((*o).To), Unknown: (*o).From == 0} }},
		table.CountColumn("spans", "spans in OTLP dumps", func(o **Overview) int64 { return (*o).count(int64((*o).Spans)) }),
		table.CountColumn("requests", "requests in the dumps", func(o **Overview) int64 { return (*o).requests() }),
		table.CountColumn("finished", "finished requests", n(request.Finished)),
		table.CountColumn("aborted", "aborted requests", n(request.Aborted)),
		table.CountColumn("failed", "failed requests", n(request.Failed)),
		table.CountColumn("unfinished", "requests whose end is not in the files", n(request.Unfinished)),
		table.NumberColumn("request rate", "requests started per second between from and to", rate(func(o *Overview) float64 { return o.RequestRate })),
		table.NumberColumn("prompt token rate", "prompt tokens of finished requests per second", rate(func(o *Overview) float64 { return o.PromptRate })),
		table.NumberColumn("output token rate", "output tokens of finished requests per second", rate(func(o *Overview) float64 { return o.OutputRate })),
	})
}

// count returns n, or request.Unknown without requests.
func (o *Overview) count(n int64) int64 {
	if o.Requests == nil {
		return request.Unknown
	}
	return n
}

func (o *Overview) requests() int64 {
	if o.Requests == nil {
		return request.Unknown
	}
	return int64(len(o.Requests.Requests))
}

func (o *Overview) serverReport() *table.Table {
	return table.New("sgtrace.report.summary.servers/v1", "Servers", o.Servers, []table.Field[Server]{
		table.TextColumn("role", "role of the servers", func(s *Server) string { return s.Role.String() }),
		table.TextColumn("hosts", "hosts, separated by commas", func(s *Server) string { return strings.Join(s.Hosts, ",") }),
		table.CountColumn("ranks", "number of ranks that worked on requests", func(s *Server) int64 { return int64(s.Ranks) }),
		table.TextColumn("size", "number of ranks along each parallel dimension, with its letters", func(s *Server) string { return s.Size }),
	})
}

// profileReport says where the time of every device went.
func (o *Overview) profileReport() *table.Table {
	g := o.GPUs
	if g == nil {
		g = &gpu.GPUs{}
	}
	return g.ShareReport("sgtrace.report.summary.profiles/v2")
}

func (o *Overview) clockReport() *table.Table {
	return table.New("sgtrace.report.summary.clocks/v1", "Clocks of hosts", o.Clocks, []table.Field[HostClock]{
		table.TextColumn("host", "host name, or the start of its ID", func(c *HostClock) string { return c.Host }),
		table.TextColumn("why", "how the clock is known: reference, given, recorded, matched, assumed", func(c *HostClock) string { return c.Why }),
		table.TextColumn("by", "evidence: requests, collectives", func(c *HostClock) string { return c.By }),
		table.NsColumn("offset", "this clock minus the reference", func(c *HostClock) int64 { return c.Offset }),
		table.NsColumn("bound", "error bound of the offset", func(c *HostClock) int64 { return c.Bound }),
		table.NsColumn("set by", "how far the clock was stepped during serving: positive is forward, negative is back; the first step if there were several", func(c *HostClock) int64 {
			if x := o.stepOf(c); x != nil {
				return x.By
			}
			return request.Unknown
		}),
		{Column: table.Column{Name: "set at", Unit: table.Instant, Doc: "approximate time on this clock just after the step"}, Cell: func(c *HostClock) table.Cell {
			if x := o.stepOf(c); x != nil {
				return table.InstantCell(x.At)
			}
			return table.Cell{Unknown: true}
		}},
		table.CountColumn("drift_ppb", "clock drift: how fast the offset grows, in ns per second; 0 if no drift was found", func(c *HostClock) int64 { return c.Drift }),
	})
}

// stepOf returns the first time c was set while requests were served, or nil if it never was.
func (o *Overview) stepOf(c *HostClock) *request.ClockStep {
	if o.Requests == nil {
		return nil
	}
	i := slices.IndexFunc(o.Requests.Steps, func(x request.ClockStep) bool { return x.Host == c.Host })
	if i < 0 {
		return nil
	}
	return &o.Requests.Steps[i]
}

// latencyReport is the table of the latencies of whole requests.
func latencyReport(list []requests.Latency) *table.Table {
	ns := table.TookColumn[requests.Latency]
	fields := []table.Field[requests.Latency]{
		table.TextColumn("metric", strings.Join(metric.Names(metric.At(metric.Headline)), ", ")+" of finished requests; "+metric.UserTTFT.Name+" where there is a gateway", func(l *requests.Latency) string { return l.Metric }),
		ns("mean", "arithmetic mean", func(l *requests.Latency) int64 { return l.Mean }),
		table.TextColumn("latency", "display name of the metric", LatencyName),
		table.CountColumn("n", "number of values", func(l *requests.Latency) int64 { return int64(l.N) }),
		ns("p50", "median, nearest rank", func(l *requests.Latency) int64 { return l.P50 }),
		ns("p90", "90th percentile, nearest rank", func(l *requests.Latency) int64 { return l.P90 }),
		ns("p99", "99th percentile, nearest rank", func(l *requests.Latency) int64 { return l.P99 }),
		ns("max", "longest", func(l *requests.Latency) int64 { return l.Max }),
	}
	table.Detail(fields[:2])
	return table.New("sgtrace.report.summary.latency/v1", "", list, fields)
}

// An Event is a line in the timeline of a post-mortem.
type Event struct {
	At   trace.Time
	Text string
}

// events lists, in order of time, the first and last events of the inputs, changes in load and latency, when findings
// begin and end, what happened to servers, and failed requests.
func (o *Overview) events() []Event {
	var list []Event
	add := func(at trace.Time, format string, args ...any) {
		if at != 0 {
			list = append(list, Event{at, fmt.Sprintf(format, args...)})
		}
	}
	if o.Requests != nil && len(o.Requests.Requests) > 0 {
		add(o.From, "the first request starts")
		add(o.To, "the last request ends")
		o.addFailures(add)
	}
	if o.GPUs != nil {
		from, to := o.GPUs.Bounds()
		add(from, "the first kernel or copy that profilers recorded")
		add(to, "the last kernel or copy that profilers recorded")
	}
	told := map[trace.Time]bool{} // Findings may be about a change or an event of a server: don't list it twice.
	for i := range o.Findings {
		f := &o.Findings[i]
		add(f.Since, "finding %d: %s", i+1, f.Text)
		add(f.Until, "finding %d is over", i+1)
		told[f.Since] = true
	}
	if o.Lives != nil {
		for i := range o.Lives.Events {
			if e := &o.Lives.Events[i]; !told[e.At] {
				add(e.At, "%s", e.Sentence())
			}
		}
	}
	if o.Logged != nil {
		for i := range o.Logged.Events {
			if e := &o.Logged.Events[i]; !told[e.First] {
				add(e.First, "%s", o.Logged.Sentence(e))
			}
		}
	}
	if o.Changes != nil {
		for i := range o.Changes.List {
			if c := &o.Changes.List[i]; !told[c.Time] {
				add(c.Time, "%s", c.Sentence())
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return list
}

// addFailures adds each failed request, or only the first and the last if there are more than a few.
func (o *Overview) addFailures(add func(trace.Time, string, ...any)) {
	const few = 3
	var failed []*request.Request
	for i := range o.Requests.Requests {
		if r := &o.Requests.Requests[i]; r.Status == request.Failed {
			failed = append(failed, r)
		}
	}
	slices.SortStableFunc(failed, func(a, b *request.Request) int { return cmp.Compare(a.End, b.End) })
	if len(failed) > few {
		add(failed[0].End, "the first of %s that failed: %s", words.Counted(len(failed), "request"), o.Requests.Text(failed[0].RID))
		add(failed[len(failed)-1].End, "the last of them: %s", o.Requests.Text(failed[len(failed)-1].RID))
		return
	}
	for _, r := range failed {
		add(r.End, "request %s fails", o.Requests.Text(r.RID))
	}
}

// A Fact is a line at the top of an overview, such as what was read or how high the load was.
type Fact struct{ Name, Text string }

// Facts returns the lines at the top of the overview.
func (o *Overview) Facts() []Fact {
	return order.Each(o.facts(), func(f fact) Fact { return Fact{f.name, f.text} })
}

// list returns the findings as a List.
func (o *Overview) list() *List {
	return &List{Result: &o.Result, Select: o.Select, Inputs: o.Inputs, All: o.AllFindings, Evidence: o.AllEvidence, Played: o.Played}
}

const (
	// farApart is the idle time that separates two runs, ns, the same as for devices.
	farApart = trace.Time(time.Hour)
	// day is the longest that one run lasts, ns: anything longer is divided.
	day = trace.Time(24 * time.Hour)
)

// severalRuns reports whether the inputs may come from several runs: there are several files, with requests an hour
// apart or over more than a day.
func (o *Overview) severalRuns() bool {
	if len(o.Files) < 2 {
		return false
	}
	if o.GPUs != nil && len(o.GPUs.Runs) > 1 {
		return true
	}
	if o.Requests == nil || len(o.Requests.Requests) == 0 {
		return false
	}
	first, last := trace.Time(0), trace.Time(0)
	for i := range o.Requests.Requests { // sorted by start
		r := &o.Requests.Requests[i]
		if last != 0 && (r.Start-last >= farApart || r.End-first > day) {
			return true
		}
		first = cmp.Or(first, r.Start)
		last = max(last, r.End)
	}
	return false
}
