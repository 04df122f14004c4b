package overview

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Schema is the schema of an overview as JSON, and of the table of its
// findings as CSV.
const Schema = "sgtrace.report.summary/v1"

// An Input is what an overview is of.
type Input struct {
	// Select and Inputs are the arguments of 'sgtrace report' that select and name what
	// is looked at, for the commands that show more.
	Select, Inputs []string
	Files          []document.Input
	Requests       *request.Set // of OTLP dumps; nil without
	Profiles       *profile.Set // of profilers; nil without
	Devices        gpu.Options  // how the devices of Profiles are measured
	// Clocks tell how the clocks of hosts relate; none if nobody looked.
	Clocks []HostClock
	// Diags is what is wrong with the inputs. It grows while the rows of exports are read,
	// which is when they are measured. nil is nothing.
	Diags *trace.Diags
}

// A HostClock is how the clock of a host relates to the reference, on which requests are
// put. What ran on devices stays as hosts stamped it.
type HostClock struct {
	Host   string
	Why    string // "reference", "given", "recorded", "matched", "assumed"
	By     string // what told: "requests", "collectives"; "" is nothing
	Offset int64  // ns: this clock minus the reference
	Bound  int64  // ns: how far off the offset may be; request.Unknown
}

// An Overview is the one screen about some inputs: what was read, how far it can be
// trusted, how the requests did, and what stands out.
type Overview struct {
	Input
	Spans    int
	From, To trace.Time // of the requests, else of what profilers captured; 0 is unknown
	// Statuses counts the requests by how they ended, in the order of request.Status.
	Statuses [request.Unfinished + 1]int
	Servers  []Server
	// Latencies are those of whole requests: e2e, ttft, itl.
	Latencies []requests.Latency
	// Rates per second between From and To: of requests that started, and of tokens that
	// finished requests took and gave. NaN is unknown.
	RequestRate, PromptRate, OutputRate float64
	Warnings                            []Warning         // worst first
	Findings                            []finding.Finding // those that cost most first
	// Looked tells what was looked at for findings, in words.
	Looked []string

	// What findings are made of, for whoever shows more of it; nil without requests, or
	// without profiles.
	Tail        *tail.Tail
	Changes     *change.Changes
	RankLoads   *rank.Ranks
	GPUs        *gpu.GPUs
	Collectives *collective.Collectives

	stages, steps bool // some were traced: of requests, and of decoding
}

// overviewMetrics are the latencies that an overview shows.
var overviewMetrics = []string{"e2e", "ttft", "itl"}

// New looks at everything, on all cores.
func New(in Input) *Overview {
	o := &Overview{Input: in, RequestRate: math.NaN(), PromptRate: math.NaN(), OutputRate: math.NaN()}
	var wg sync.WaitGroup
	if o.Requests != nil {
		o.Spans = o.Requests.Len()
		wg.Go(func() { o.Tail = tail.New(o.Requests, tail.Options{}) })
		wg.Go(func() { o.Changes = change.Find(o.Requests) })
		wg.Go(func() { o.RankLoads = rank.Measure(o.Requests) })
		wg.Go(o.measureRequests)
	}
	if o.Profiles != nil && len(o.Profiles.Ranks) > 0 {
		wg.Go(func() { o.GPUs = gpu.Measure(o.Profiles, o.Devices) })
		wg.Go(func() { o.Collectives = collective.Measure(o.Profiles, o.Devices.From, o.Devices.To) })
	}
	wg.Wait()
	if o.From == 0 && o.GPUs != nil {
		o.From, o.To = o.GPUs.Bounds()
	}
	o.Findings = finding.Merge(o.found(), consequences)
	o.Warnings = o.warnings()
	return o
}

// consequences: load makes decoding slow, ranks wait for a slow one where they
// communicate, and a server that is slow may have become so.
var consequences = []finding.Consequence{
	{Cause: finding.Load, Effect: finding.Tail, Topics: []string{cause.Interference.String(), cause.Decode.String()}},
	{Cause: finding.Imbalance, Effect: finding.Tail, Topics: []string{cause.Interference.String(), cause.Decode.String()}},
	{Cause: finding.Straggler, Effect: finding.GPU, Topics: []string{"communication"}},
	{Cause: finding.Slower, Effect: finding.Change, Topics: []string{""}},
	{Cause: finding.Slower, Effect: finding.Tail, Topics: []string{cause.Decode.String()}},
}

// found gathers what every report found. Of those that tell the same, the first one is
// told: of load the one that knows since when, of ranks the one that counted how often
// they are late.
func (o *Overview) found() []finding.Finding {
	var loads, ranks, collectives, others, gpus, relief []finding.Finding
	if o.Requests != nil {
		b := cause.NewCosts(o.Requests, o.Tail.Hosts, o.Tail.List)
		ranks = b.Price(o.RankLoads.Findings())
		for _, f := range o.Changes.Findings(b) {
			switch {
			case f.Kind == finding.Load && f.Weight == 0:
				relief = append(relief, f) // less to do
			case f.Kind == finding.Load:
				loads = append(loads, f)
			default:
				others = append(others, f)
			}
		}
		others = slices.Concat(others, requests.ErrorFindings(o.Requests, b), o.Tail.Findings(b), requests.OverloadFindings(o.Requests))
		o.lookedAtRequests()
	}
	if o.GPUs != nil {
		collectives, gpus = o.Collectives.Findings(o.GPUs), o.GPUs.Findings(o.Collectives.Waiting())
		o.lookedAtDevices()
	}
	return slices.Concat(loads, ranks, collectives, others, gpus, relief)
}

func (o *Overview) lookedAtDevices() {
	if n := o.Collectives.Counts.Sync; n > 0 {
		o.look("who is late in %s", words.Counted(n, "collective"))
	}
	if len(o.GPUs.GPUs) > 0 {
		o.look("waits for the host and exposed communication of %s", o.GPUs.Devices())
	}
}

func (o *Overview) look(format string, args ...any) {
	o.Looked = append(o.Looked, fmt.Sprintf(format, args...))
}

// lookedAtRequests tells what there was enough of.
func (o *Overview) lookedAtRequests() {
	n := len(o.Tail.List)
	if n >= finding.FewCompared && o.stages {
		o.look("slow requests against usual ones, cause by cause (%s finished)", words.Thousands(int64(n)))
	}
	if o.Tail.Transfers != nil {
		o.look("%s", words.Counted(o.Tail.Transfers.N, "KV transfer"))
	}
	steps := 0
	for _, g := range o.RankLoads.Groups {
		steps += g.Steps
	}
	if steps > 0 {
		o.look("who is late in %s of TP ranks", words.Counted(steps, "step"))
	}
	if o.Changes.Series > 0 {
		o.look("changes of load and latency over time (%d series)", o.Changes.Series)
	}
	if n := len(o.Requests.Requests); n > 0 {
		o.look("failures and retractions (%s)", words.Counted(n, "request"))
	}
}

// measureRequests counts the requests, where they were served, and how they did.
func (o *Overview) measureRequests() {
	s := o.Requests
	e := load.BulkOf(s)
	o.From, o.To = e.From, e.To
	for i := range s.Requests {
		o.Statuses[s.Requests[i].Status]++
	}
	o.Servers = serversOf(s)
	o.stages, o.steps = traced(s)
	for _, l := range requests.MeasureLatencies(s).Rows {
		if l.Of == requests.Finished && slices.Contains(overviewMetrics, l.Metric) {
			o.Latencies = append(o.Latencies, l)
		}
	}
	seconds := float64(o.To-o.From) / 1e9
	if seconds <= 0 {
		return
	}
	o.RequestRate = float64(len(s.Requests)-e.Outside) / seconds
	o.PromptRate = sumKnown(s, func(m *request.Metrics) int64 { return m.PromptTokens }) / seconds
	o.OutputRate = sumKnown(s, func(m *request.Metrics) int64 { return m.CompletionTokens }) / seconds
}

// traced reports whether there are stages of requests, and steps of decoding, selected or
// not.
func traced(s *request.Set) (stages, steps bool) {
	for i := range s.Len() {
		if kind := s.Kind(i); kind != request.Stage && kind != request.Unselected {
			continue
		}
		if stages = true; s.Row(i).Means == request.Stepping {
			return true, true
		}
	}
	return stages, false
}

// sumKnown adds up a count over the finished requests that have it; NaN if none has.
func sumKnown(s *request.Set, of func(*request.Metrics) int64) float64 {
	sum, known := int64(0), false
	for i := range s.Requests {
		if r := &s.Requests[i]; r.Status == request.Finished && of(&r.Metrics) >= 0 {
			sum, known = distribution.AddTimes(sum, of(&r.Metrics)), true
		}
	}
	if !known {
		return math.NaN()
	}
	return float64(sum)
}
