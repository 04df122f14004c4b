package overview

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// An Input is what an overview is made from, and how it is shown.
type Input struct {
	// Select and Inputs are the arguments of 'sgtrace report' that select the data and name the inputs. The commands
	// printed with findings repeat them.
	Select, Inputs []string
	Files          []document.Input
	Requests       *request.Set         // from OTLP dumps; nil without
	Profiles       *profile.Set         // from profilers; nil without
	Series         *series.Set          // from logs and metrics; nil without
	Flight         *recorder.InFlight   // collectives in flight in each process; nil without
	Heap           *recorder.Memory     // device memory held by allocators; nil without
	Experts        *recorder.Experts    // tokens per expert; nil without
	Devices        gpu.Options          // how to measure the devices of Profiles
	SLO            []requests.Objective // to judge Requests by; nil for none
	Mutes          []finders.Mute       // findings to count but not to show
	AllFindings    bool                 // text shows all findings, not just the top ones
	AllEvidence    bool                 // text shows all evidence for each finding
	// Weeks reads the inputs again, one run after another. New calls it if the inputs may come from several runs; it
	// returns nil if they turn out to be of one run. It is nil if the caller does not need runs.
	Weeks         func() finders.Runs
	Drawn, Played bool // see [finders.Inputs]
	// Clocks says how the clocks of hosts relate. It is empty if they were not compared.
	Clocks []HostClock
	// Diags collects the problems of the inputs. It still grows while New measures, because that is when the rows of
	// exports are read. nil is no problems.
	Diags *trace.Diags
}

// A HostClock relates the clock of a host to the reference clock, to which requests are moved. Device times stay as
// the host stamped them.
type HostClock struct {
	Host   string
	Why    string // "reference", "given", "recorded", "matched", "assumed"
	By     string // the evidence: "requests", "collectives"; "" is none
	Offset int64  // ns: this clock minus the reference
	Bound  int64  // ns: how far off Offset may be; may be request.Unknown
	// Drift is how fast the offset grows, ns per second; 0 if no drift is known. With drift, Offset is the value in
	// the middle of the capture, and Most the largest one, without its sign, while events are stamped.
	Drift, Most int64
	// Lopsided says that Bound is large because few requests are fast in one of the two directions.
	Lopsided bool
}

// An Overview is one screen about some inputs: what was read, how far to trust it, how the requests did, and what
// stands out.
type Overview struct {
	Input
	Spans    int
	From, To trace.Time // of the requests, or else of what profilers captured; 0 is unknown
	// Statuses counts the requests by outcome, indexed by request.Status.
	Statuses [request.Unfinished + 1]int
	Servers  []Server
	// Latencies are of whole requests: e2e, ttft, itl, and user_ttft if there is a gateway.
	Latencies []requests.Latency
	Goodput   *requests.Goodput  // judged by SLO; nil without
	Metrics   *telemetry.Metrics // nil without logs and metrics
	// Rates per second between From and To: requests started, and the prompt and output tokens of finished requests.
	// NaN is unknown.
	RequestRate, PromptRate, OutputRate float64
	Warnings                            []document.Warning // worst first

	finders.Measured // the measurements behind the findings, for callers that show more
	finders.Result
}

// New measures everything, on all cores.
func New(in Input) *Overview {
	o := &Overview{Input: in, RequestRate: math.NaN(), PromptRate: math.NaN(), OutputRate: math.NaN()}
	var wg sync.WaitGroup
	if o.Requests != nil {
		for i := range o.Requests.Files { // rows, not spans of requests: a row with attributes only counts, too
			o.Spans += o.Requests.Files[i].Rows
		}
		wg.Go(o.measureRequests)
	}
	wg.Go(func() {
		o.Measured = finders.Measure(finders.Inputs{Requests: in.Requests, Profiles: in.Profiles, Series: in.Series, Flight: in.Flight, Heap: in.Heap, Experts: in.Experts, Devices: in.Devices, Diags: in.Diags, Drawn: in.Drawn, Paths: in.Drawn, Played: in.Played})
	})
	if o.Series != nil {
		wg.Go(func() {
			o.Metrics = telemetry.MeasureMetrics(in.Series, telemetry.Options{From: in.Devices.From, To: in.Devices.To})
		})
	}
	wg.Wait()
	if o.Requests != nil {
		o.Servers = serversOf(o.Measured.Tail.Peers.Ranks)
	}
	if o.From == 0 && o.GPUs != nil {
		o.From, o.To = o.GPUs.Bounds()
	}
	if o.From == 0 && o.Logged != nil {
		o.From, o.To = o.loggedPeriod(in.Devices.From != 0 || in.Devices.To != 0)
	}
	if o.From == 0 && o.Series != nil {
		o.From, o.To, _ = o.Series.Bounds()
	}
	if o.From == 0 && o.Collectives != nil {
		o.From, o.To = o.Collectives.First, o.Collectives.Last
	}
	if o.From == 0 && o.Hang != nil {
		o.From, o.To = o.Hang.Bounds()
	}
	if o.Goodput != nil {
		o.Goodput.Blame(o.Tail.List)
	}
	if o.Weeks != nil && o.severalRuns() {
		o.Of.Weeks = o.Weeks()
	}
	words.SetDated(o.needsDates())
	o.Result = o.Look(finders.All)
	o.Mute(o.Mutes)
	o.Warnings = o.warnings()
	return o
}

// needsDates reports whether a time of day alone says too little about the inputs: they last for a day or longer. Findings
// about one of several runs say when the run was.
func (o *Overview) needsDates() bool {
	from, to := o.From, o.To
	if o.Series != nil {
		if first, last, ok := o.Series.Bounds(); ok {
			from, to = order.Earlier(from, first), max(to, last)
		}
	}
	return words.IsDate(from) && to-from >= trace.Time(24*time.Hour) && (o.GPUs == nil || !o.GPUs.Divided())
}

// onlyMeets reports whether the profiles hold collectives, but nothing else that ran on devices.
func (o *Overview) onlyMeets() bool {
	return o.Collectives != nil && o.Collectives.Some() && !o.GPUs.Ran()
}

// loggedPeriod returns the period of the servers' batches. Unless only part of the time was selected, it extends to
// everything else in their logs, because a server may fail to start long before the first batch.
func (o *Overview) loggedPeriod(part bool) (from, to trace.Time) {
	if from, to = o.Logged.From, o.Logged.To; from == 0 {
		from, to, _ = o.Series.Bounds()
		return from, to
	}
	for i := range o.Series.Sources {
		if x := &o.Series.Sources[i]; !part && x.Encoding == "server log" && !x.OnlyRecords {
			from, to = order.Earlier(from, x.First), max(to, x.Last)
		}
	}
	return from, to
}

// Empty reports whether there are no requests, no logs or metrics, and no recorded device activity or calls.
func (o *Overview) Empty() bool {
	return o.Requests == nil && o.Series == nil && o.Hang == nil && o.Experts == nil && o.Heap == nil && (o.GPUs == nil || !o.GPUs.Ran() && len(o.GPUs.Calls) == 0) && !o.onlyMeets()
}

// measureRequests counts the requests and measures their latencies, goodput, and rates.
func (o *Overview) measureRequests() {
	s := o.Requests
	e := load.BulkOf(s)
	o.From, o.To = e.From, e.To
	for i := range s.AllRequests() {
		o.Statuses[s.Requests[i].Status]++
	}
	o.Latencies = headlines(requests.MeasureLatencies(s).Rows)
	if o.SLO != nil {
		o.Goodput = requests.MeasureGoodput(s, o.SLO)
	}
	seconds := float64(o.To-o.From) / 1e9
	started := len(s.Requests) - e.Outside
	if seconds <= 0 || started < 2 { // one request has no rate
		return
	}
	o.RequestRate = float64(started) / seconds
	o.PromptRate = sumKnown(s, func(m *request.Metrics) int64 { return m.PromptTokens }) / seconds
	o.OutputRate = sumKnown(s, func(m *request.Metrics) int64 { return m.CompletionTokens }) / seconds
}

// headlines returns the latencies of whole requests that matter most.
func headlines(rows []requests.Latency) (list []requests.Latency) {
	for _, l := range rows {
		switch m := metric.Named(l.Metric); {
		case l.Of != requests.Finished:
		case l.Metric == metric.UserTTFT.Name:
			at := slices.IndexFunc(list, func(o requests.Latency) bool { return o.Metric == metric.TTFT.Name })
			list = slices.Insert(list, max(0, at), l)
		case m != nil && m.Weight == metric.Headline:
			list = append(list, l)
		}
	}
	return list
}

// UserLatencies returns the latencies as users see them: behind a gateway, user_ttft replaces ttft, because users
// wait longer for the first token than servers can tell.
func (o *Overview) UserLatencies() []requests.Latency {
	if !slices.ContainsFunc(o.Latencies, func(l requests.Latency) bool { return l.Metric == metric.UserTTFT.Name }) {
		return o.Latencies
	}
	return slices.DeleteFunc(slices.Clone(o.Latencies), func(l requests.Latency) bool { return l.Metric == metric.TTFT.Name })
}

// LatencyName returns the title of a latency for people.
func LatencyName(l *requests.Latency) string {
	if l.Metric == metric.UserTTFT.Name {
		return metric.UserTTFT.Title
	}
	return metric.Named(l.Metric).Title
}

// sumKnown adds up a count over the finished requests that have it. It returns NaN if none has.
func sumKnown(s *request.Set, of func(*request.Metrics) int64) float64 {
	sum, known := int64(0), false
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Finished && of(&r.Metrics) >= 0 {
			sum, known = distribution.AddTimes(sum, of(&r.Metrics)), true
		}
	}
	if !known {
		return math.NaN()
	}
	return float64(sum)
}

// FinderReport makes the table of what each finder looked at.
func (l *List) FinderReport() *table.Table {
	type C = finders.FinderCheck
	return table.New("sgtrace.report.summary.finders/v1", "What was looked at", l.Result.Checks, []table.Field[C]{
		table.TextColumn("kind", "kind of finding", func(c *C) string { return string(c.Finder.Kind) }),
		table.TextColumn("finds", "what it looks for", func(c *C) string { return c.Finder.Doc }),
		table.TextColumn("state", "result of the check: looked at, not enough data, or not applicable", func(c *C) string { return string(c.Check.State()) }),
		table.TextColumn("what", "what it examines", func(c *C) string { return c.Check.What }),
		table.TextColumn("of", "unit of n and needed, such as requests or steps", func(c *C) string { return c.Check.Of }),
		table.CountColumn("n", "number available", func(c *C) int64 { return int64(c.Check.N) }),
		table.CountColumn("needed", "number required", func(c *C) int64 { return int64(c.Check.Needed) }),
		table.ShareColumn("covered", "share of the relevant time that the data covers", func(c *C) float64 { return c.Check.Covered.Share() }),
		table.TextColumn("reason", "why the check is not applicable", func(c *C) string { return c.Check.Reason }),
		table.CountColumn("found", "number of findings before duplicates are merged", func(c *C) int64 { return int64(c.N) }),
	})
}

// Report makes the table of the findings.
func (l *List) Report() *table.Table {
	type F = finding.Finding
	part := func(k int) func(*F) string {
		return func(f *F) string {
			role, host, rank := f.At.Parts()
			return [...]string{role, host, rank}[k]
		}
	}
	p := func(f *F) float64 {
		if !f.P.Known {
			return math.NaN()
		}
		return f.P.P
	}
	metric := func(of func(*F) float64) func(*F) float64 {
		return func(f *F) float64 {
			if f.Metric.Name == "" {
				return math.NaN()
			}
			return of(f)
		}
	}
	t := table.New("sgtrace.report.findings/v1", "Findings", l.Result.Findings, []table.Field[F]{
		table.TextColumn("id", "stable ID: the same in every run on the same data", (*F).ID),
		table.TextColumn("kind", "kind of finding; docs/METRICS.md lists them", func(f *F) string { return string(f.Kind) }),
		table.TextColumn("severity", "critical, warning or info", func(f *F) string { return string(f.Severity) }),
		table.TextColumn("confidence", "certain or likely", func(f *F) string { return string(f.Confidence) }),
		table.TextColumn("scope", "what the row covers: all, a role, or a rank", func(f *F) string { return f.At.Scope.String() }),
		table.TextColumn("role", "role of the server", part(0)),
		table.TextColumn("host", "host name, or the start of its ID", part(1)),
		table.TextColumn("rank", "parallel ranks, such as DP1 TP0", part(2)),
		{Column: table.Column{Name: "since", Unit: table.Instant, Doc: "when it began; empty if it was there from the start"},
			Cell: func(f *F) table.Cell { return table.Cell{N: int64(f.Since), Unknown: f.Since == 0} }},
		table.ShareColumn("cost", "cost as a share, 0 to 1, of what cost_of names", func(f *F) float64 { return f.Cost }),
		table.TextColumn("cost of", "what cost is a share of, such as request time, rank time, GPU time, requests, or CUDA calls", func(f *F) string { return string(f.CostBasis) }),
		table.TextColumn("metric", "metric that the finding is about", func(f *F) string { return f.Metric.Name }),
		table.TextColumn("unit", "unit of before and after", func(f *F) string { return f.Metric.UnitName() }),
		table.NumberColumn("before", "value before, or usual value elsewhere", metric(func(f *F) float64 { return f.Metric.Before })),
		table.NumberColumn("after", "value now", metric(func(f *F) float64 { return f.Metric.After })),
		table.NumberColumn("p", "probability of such a finding if nothing is wrong; empty if not tested", p),
		table.TextColumn("text", "the finding in one sentence: what, where, since when, by how much", func(f *F) string { return f.Text }),
		table.TextColumn("command", "command that shows more", l.command),
	})
	if text := l.MutedText(); text != "" {
		t.Note("muted: %s", text)
	}
	return t
}
