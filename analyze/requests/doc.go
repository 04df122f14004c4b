// Package requests reports how long stages and requests took, and how many failed: the tables of stages and
// latencies, the list of requests, and the waterfall of a single request. The requests themselves are in package
// request.
//
// It also says which requests meet a service-level objective, such as 'sgtrace report --slo ttft=500ms,itl=50ms': how
// many (goodput), when, on which ranks, and why the others missed it. An [Objective] is a limit for one latency of a
// request. A request meets the SLO if it finished and keeps all limits. docs/METRICS.md has the definitions.
//
// errors.go finds spans that were lost on their way to a dump, as far as other spans prove it.
package requests
