package metric

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
)

// Metrics of requests. docs/METRICS.md says when each of them is unknown.
var (
	E2E = &Metric{Name: "e2e", Title: "E2E", Weight: Headline, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "from the start to the end of the outermost span: gateway, else answering server",
		Word: "end-to-end latency: from the start of a request to its end",
		Of:   func(m *request.Metrics) int64 { return m.E2E }}
	TTFT = &Metric{Name: "ttft", Title: "TTFT", Weight: Headline, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "time to the first token, as the answering server sees it",
		Word: "time to first token: from the start of a request to its first output token",
		Of:   func(m *request.Metrics) int64 { return m.TTFT }}
	TPOT = &Metric{Name: "tpot", Title: "TPOT", Weight: Noticed, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "time per output token after the first one, on the answering server",
		Word: "time per output token: the time after the first token, divided by the number of tokens after it",
		Of:   func(m *request.Metrics) int64 { return m.TPOT }}
	Queue = &Metric{Name: "queue", Title: "queue", Weight: Part, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "waiting to be scheduled, prefill and decode side together",
		Of:  func(m *request.Metrics) int64 { return m.Queue }}
	Prefill = &Metric{Name: "prefill", Title: "prefill", Weight: Part, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "computing the prompt",
		Of:  func(m *request.Metrics) int64 { return m.Prefill }}
	Transfer = &Metric{Name: "transfer", Title: "transfer", Weight: Part, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "decode side waits for the KV cache",
		Of:  func(m *request.Metrics) int64 { return m.Transfer }}
	Decode = &Metric{Name: "decode", Title: "decode", Weight: Part, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "from the first decode step to the last",
		Of:  func(m *request.Metrics) int64 { return m.Decode }}
	Unaccounted = &Metric{Name: "unaccounted", Title: "unaccounted", Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "part of E2E that no stage covers",
		Of:  func(m *request.Metrics) int64 { return m.Unaccounted }}
	ITL = &Metric{Name: "itl", Title: "ITL", Weight: Headline, Curve: true, Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc:  "gap between consecutive tokens, each by itself",
		Word: "inter-token latency: from one output token of a request to its next",
		Of:   meanGap, each: (*request.Set).Gaps}
	// UserTTFT is TTFT from the user's view, which differs where there is a gateway. Objectives
	// mean it by "ttft".
	UserTTFT = &Metric{Name: "user_ttft", Title: "TTFT", Unit: table.Duration, Better: Less, Numbers: Spread,
		Doc: "time from the start of the outermost span to the first token",
		Of:  func(m *request.Metrics) int64 { return m.UserTTFT }}
)

// AsSeen is a metric from the user's view: of TTFT another one, since users wait for the gateway, too.
func (m *Metric) AsSeen() *Metric {
	if m == TTFT {
		return UserTTFT
	}
	return m
}

// Requests are the durations of a request, in the order of reports. UserTTFT is none of them, as it
// would be there twice without a gateway.
var Requests = []*Metric{E2E, TTFT, TPOT, Queue, Prefill, Transfer, Decode, Unaccounted, ITL}

// GoodShare is the part of the requests that meet the SLO.
var GoodShare = &Metric{Name: "goodput.share", Title: "goodput: share of requests that meet the SLO", Unit: table.Share, Better: More, During: true,
	Doc:   "share of requests that meet `--slo`",
	Ratio: func(a *Arrival) (sum, of float64, ok bool) { return number(a.Good), 1, a.Judged }}

// meanGap is the mean gap between the tokens of a request; its TPOT where the dump shows no steps.
func meanGap(m *request.Metrics) int64 {
	if m.ITL.N > 0 {
		return m.ITL.Mean
	}
	return m.TPOT
}

// Loads say what requests asked for, and how many of them were answered as they should be: means over
// requests.
var Loads = []*Metric{
	{Name: "requests.rate", Title: "requests per second", Unit: table.Number, Doc: "requests per second",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return 1, float64(a.Since) / 1e9, a.Since >= 0 }},
	{Name: "prompt.mean", Title: "prompt tokens per request", Unit: table.Number, Doc: "prompt tokens per request",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return perRequest(a.Metrics.PromptTokens) }},
	{Name: "output.mean", Title: "output tokens per request", Unit: table.Number, Doc: "output tokens per request",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return perRequest(a.Metrics.CompletionTokens) }},
	{Name: "requests.unfinished", Title: "share of requests that did not finish", Unit: table.Share, Better: Less, During: true,
		Doc:   "share of requests that did not finish",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) { return number(a.Status != request.Finished), 1, true }},
	GoodShare,
	{Name: "goodput.rate", Title: "goodput: requests per second that meet the SLO", Unit: table.Number, Better: More, During: true,
		Doc: "requests per second that meet `--slo`",
		Ratio: func(a *Arrival) (sum, of float64, ok bool) {
			return number(a.Good), float64(a.Since) / 1e9, a.SLO && a.Since >= 0
		}},
}

// perRequest is a count that a request has.
func perRequest(n int64) (sum, of float64, ok bool) { return float64(n), 1, n >= 0 }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
