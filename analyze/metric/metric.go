// Package metric is the one list of what is measured: the name of each metric, its unit, how it is
// measured, and whether more of it is better. Reports, gates, pages, options, and help read it, so
// that a metric is the same wherever it is printed.
//
// A metric of requests has everything that it takes to measure it: a row in [Requests] or [Loads] is
// in the report of latencies, in comparisons, in conditions of gates, and on pages. Profiles have many
// durations under one name, [Groups], which the reports about these measure.
package metric

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// A Metric is something that is measured.
type Metric struct {
	Name  string // as options, conditions, and programs write it: "ttft", "requests.rate"
	Title string // as people read it: "TTFT", "requests per second"
	Long  string // as sentences write it, for where Title does not fit: "exposed communication"
	Doc   string // how it is measured
	// Word explains Title to people who do not know the term; "" if it explains itself.
	Word   string
	Unit   table.Unit
	Better Better
	// Numbers are the statistics of many values, "p50", "p99", and others; nil if the metric is a mean.
	Numbers []string
	Named   Naming
	Weight  Weight
	Curve   bool // pages draw its distribution over requests

	// Of returns the value of a request, in ns, or request.Unknown. It is set for all metrics in
	// Requests.
	Of func(*request.Metrics) int64
	// each returns the values of a request that may have several; nil if Of returns the only one.
	each func(*request.Set, *request.Request) []int64
	// Ratio returns what a request adds to the numerator and the denominator of a mean; ok is false if
	// it adds nothing. It is set for all metrics in Loads.
	Ratio func(*Arrival) (sum, of float64, ok bool)
	// During reports that the ratio depends on what happens while requests run, so that requests that
	// overlap tend to have similar values.
	During bool
}

// Better says which way a metric should go.
type Better uint8

const (
	Either Better = iota // it describes the load
	Less
	More
)

// Naming says whether a name follows that of the metric in conditions: "kernel.NAME.total".
type Naming uint8

const (
	NoName Naming = iota
	MayName
	MustName
)

// Weight says how much a metric matters to people.
type Weight uint8

const (
	Rest     Weight = iota
	Part            // a part of E2E
	Noticed         // by users
	Headline        // noticed, and on the first screen
)

// Statistics of many values.
var (
	Spread = []string{"p50", "p99", "mean"}
	Sums   = []string{"p50", "p99", "mean", "total"}
	Total  = []string{"total"}
)

// An Arrival is a request, with how long after the previous one it came.
type Arrival struct {
	Request *request.Request
	Since   int64 // ns since the start of the previous request; -1 for the first
	SLO     bool  // there is an SLO: Good and Judged are set
	Good    bool  // it meets the SLO
	// Judged reports that it is known whether it does.
	Judged bool
}

// String returns the name of the metric.
func (m *Metric) String() string { return m.Name }

// Values appends the values of a request to a list.
func (m *Metric) Values(list []int64, s *request.Set, r *request.Request) []int64 {
	if m.each != nil {
		return append(list, m.each(s, r)...)
	}
	if v := m.Of(&r.Metrics); v >= 0 {
		list = append(list, v)
	}
	return list
}

// IsMean reports whether a metric is a mean, which has no other statistics.
func (m *Metric) IsMean() bool { return m.Numbers == nil }

// At returns the metrics of requests with at least some weight, in their order.
func At(least Weight) []*Metric {
	return slices.DeleteFunc(slices.Clone(Requests), func(m *Metric) bool { return m.Weight < least })
}

// Named returns the metric of requests with a name, in upper or lower case; nil if there is none.
func Named(name string) *Metric {
	for _, m := range Requests {
		if strings.EqualFold(m.Name, name) {
			return m
		}
	}
	return nil
}

// Names returns the names of metrics.
func Names(list []*Metric) (names []string) {
	return order.Each(list, func(m *Metric) string { return m.Name })
}

// All returns all metrics, in the order of help.
func All() []*Metric { return slices.Concat(Requests, Loads, Speeds[:], Groups) }

// Metrics of a device's time. Exposed work runs while nothing that is worth more does: computing,
// then communicating, then copying.
var (
	Busy         = device(More, "busy", "busy", "GPU busy", "time with at least one kernel or copy running")
	Idle         = device(Less, "idle", "idle", "idle", "time with nothing running")
	Compute      = device(Either, "compute", "compute", "compute", "time with at least one compute kernel running")
	Comm         = device(Either, "comm", "total comm", "total comm", "time with at least one communication kernel running")
	ExposedComm  = device(Less, "exposed", "exposed comm", "exposed communication", "time with a communication kernel but no compute kernel running")
	Copying      = device(Either, "copy", "copy", "copy", "time with a memory copy or fill running")
	ExposedCopy  = device(Less, "exposed copy", "exposed copy", "exposed copy", "time with a memory copy or fill but no compute or communication kernel running")
	Other        = device(Either, "other", "other", "other", "time with work of class other running: CUDA graphs recorded only as a whole")
	ExposedOther = device(Less, "exposed other", "exposed other", "exposed other", "time with only work of class other running")
	LaunchQueue  = &Metric{Name: "queue", Title: "launch queue", Long: "launch queue", Unit: table.Number, Doc: "average number of kernels and copies launched but not yet started, over time"}
	Overlap      = &Metric{Name: "overlap", Title: "overlap", Unit: table.Share, Better: More, Doc: "share of the communication time during which a compute kernel runs"}
)

func device(better Better, name, title, long, doc string) *Metric {
	return &Metric{Name: name, Title: title, Long: long, Unit: table.Duration, Better: better, Doc: doc}
}

// Metrics with many durations under each name.
var (
	Stage = &Metric{Name: "stage", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MustName,
		Doc: "a stage of requests; total is per request and rank"}
	// DecodeStep compares steps of equal batch sizes only.
	DecodeStep = &Metric{Name: "decode_step", Unit: table.Duration, Better: Less, Numbers: []string{"mean"},
		Doc: "decode steps, compared with steps of the same batch size"}
	Step = &Metric{Name: "step", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MayName,
		Doc: "annotated steps, or those of one kind, over all batch sizes"}
	Kernel = &Metric{Name: "kernel", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MayName,
		Doc: "kernels, or those with one name; total is per step"}
	Copy = &Metric{Name: "copy", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MayName,
		Doc: "memory copies and fills, or those with one name; total is per step"}
	GPU = &Metric{Name: "gpu", Unit: table.Duration, Numbers: Total, Named: MustName,
		Doc: "where GPU time went: busy, idle, compute, ...; per step"}
)

// Groups are the metrics with many durations under each name, in the order of help.
var Groups = []*Metric{Stage, DecodeStep, Step, Kernel, Copy, GPU}

// Speeds are how many tokens a rank computes per second of the time that its devices take for steps, by
// kind of step. In profile.StepOther, only mixed steps have their number of tokens.
var Speeds = [...]*Metric{
	profile.StepOther:   speed("mixed"),
	profile.StepPrefill: speed("prefill"),
	profile.StepDecode:  speed("decode"),
}

func speed(kind string) *Metric {
	return &Metric{Name: "tokens." + kind, Title: "tokens per second in " + kind + " steps", Unit: table.Number, Better: More,
		Doc: "tokens per second of a rank in " + kind + " steps, relative to the device time of these steps"}
}

// Metrics of requests. docs/METRICS.md says when each of them is unknown.
var (
	E2E = &Metric{Name: "e2e", Title: "E2E", Weight: Headline, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "end-to-end latency: length of the outermost span (the gateway's, else the answering server's)",
		Word: "end-to-end latency: from the start of a request to its end",
		Of:   func(m *request.Metrics) int64 { return m.E2E }}
	TTFT = &Metric{Name: "ttft", Title: "TTFT", Weight: Headline, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "time to first token, as measured by the answering server",
		Word: "time to first token: from the start of a request to its first output token",
		Of:   func(m *request.Metrics) int64 { return m.TTFT }}
	TPOT = &Metric{Name: "tpot", Title: "TPOT", Weight: Noticed, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "time per output token after the first one, on the answering server",
		Word: "time per output token: the time after the first token, divided by the number of tokens after it",
		Of:   func(m *request.Metrics) int64 { return m.TPOT }}
	Queue = &Metric{Name: "queue", Title: "queue", Weight: Part, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "time waiting to be scheduled, on the prefill and decode sides together",
		Of:  func(m *request.Metrics) int64 { return m.Queue }}
	Prefill = &Metric{Name: "prefill", Title: "prefill", Weight: Part, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "time to compute the prompt",
		Of:  func(m *request.Metrics) int64 { return m.Prefill }}
	Transfer = &Metric{Name: "transfer", Title: "transfer", Weight: Part, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "time that the decode side waits for the KV cache",
		Of:  func(m *request.Metrics) int64 { return m.Transfer }}
	Decode = &Metric{Name: "decode", Title: "decode", Weight: Part, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "time from the start of the first decode step to the end of the last",
		Of:  func(m *request.Metrics) int64 { return m.Decode }}
	Outside = &Metric{Name: "outside", Title: "outside the server", Long: "time outside the server", Weight: Part, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "part of E2E outside the answering server's span: in a client, gateway, or router, and on the way",
		Of:  func(m *request.Metrics) int64 { return m.Outside }}
	Unaccounted = &Metric{Name: "unaccounted", Title: "unaccounted", Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "part of E2E that is covered by no stage",
		Of:  func(m *request.Metrics) int64 { return m.Unaccounted }}
	ITL = &Metric{Name: "itl", Title: "ITL", Weight: Headline, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "inter-token latency: each gap between consecutive tokens",
		Word: "inter-token latency: from one output token of a request to its next",
		Of:   meanGap, each: (*request.Set).Gaps}
	// UserTTFT is TTFT from the user's view, which differs where there is a gateway. It is what SLOs
	// call "ttft".
	UserTTFT = &Metric{Name: "user_ttft", Title: "user TTFT", Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "time from the start of the outermost span to the first token",
		Of:  func(m *request.Metrics) int64 { return m.UserTTFT }}
)

// AsSeen returns a metric from the user's view: UserTTFT for TTFT, since users also wait for the gateway.
func (m *Metric) AsSeen() *Metric {
	if m == TTFT {
		return UserTTFT
	}
	return m
}

// Requests are the durations of a request, in the order of reports. UserTTFT is not among them, as
// without a gateway it equals TTFT.
var Requests = []*Metric{E2E, TTFT, TPOT, Queue, Prefill, Transfer, Decode, Outside, Unaccounted, ITL}

// GoodShare is the part of the requests that meet the SLO.
var GoodShare = &Metric{Name: "goodput.share", Title: "goodput: share of requests that meet the SLO", Unit: table.Share, Better: More, During: true,
	Doc:   "share of requests that meet `--slo`",
	Ratio: func(a *Arrival) (sum, of float64, ok bool) { return number(a.Good), 1, a.Judged }}

// meanGap returns the mean gap between the tokens of a request, or its TPOT if the dump has no steps.
func meanGap(m *request.Metrics) int64 {
	if m.ITL.N > 0 {
		return m.ITL.Mean
	}
	return m.TPOT
}

// Loads are means over requests: what they asked for, and how many of them were answered as they
// should be.
var Loads = []*Metric{
	{Name: "requests.rate", Title: "requests per second", Unit: table.Number, Doc: "requests per second",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return 1, float64(a.Since) / 1e9, a.Since >= 0 }},
	{Name: "prompt.mean", Title: "prompt tokens per request", Unit: table.Number, Doc: "prompt tokens per request",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return perRequest(a.Request.Metrics.PromptTokens) }},
	{Name: "prompt.cached", Title: "cached share of prompt tokens", Unit: table.Share, Better: More, Doc: "share of prompt tokens that were in the cache",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) {
			m := &a.Request.Metrics
			return float64(m.CachedTokens), float64(m.PromptTokens), m.CachedTokens >= 0 && m.PromptTokens > 0
		}},
	{Name: "output.mean", Title: "output tokens per request", Unit: table.Number, Doc: "output tokens per request",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return perRequest(a.Request.Metrics.CompletionTokens) }},
	{Name: "requests.unfinished", Title: "share of requests that did not finish", Unit: table.Share, Better: Less, During: true,
		Doc: "share of requests that did not finish",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) {
			return number(a.Request.Status != request.Finished), 1, true
		}},
	GoodShare,
	{Name: "goodput.rate", Title: "goodput: requests per second that meet the SLO", Unit: table.Number, Better: More, During: true,
		Doc: "requests per second that meet `--slo`",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) {
			return number(a.Good), float64(a.Since) / 1e9, a.SLO && a.Since >= 0
		}},
}

// perRequest returns what a count adds to a mean per request; ok is false if it is unknown.
func perRequest(n int64) (sum, of float64, ok bool) { return float64(n), 1, n >= 0 }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
