// Package requests reports how long stages, requests and single requests took, and how
// many failed: the tables of stages and latencies, the list of requests, the waterfall
// of one request. The requests themselves are in package request.
//
// It says which requests meet a service-level objective, too, as 'sgtrace report --slo ttft=500ms,itl=50ms'
// asks: how many of them (goodput), when, on which ranks, and what made the others miss it. An
// [Objective] is a limit for one latency of a request; a request meets the objective if it finished and keeps all
// limits. docs/METRICS.md has the definitions.
//
// It also tells which spans were lost on their way to a dump, as far as others show it (errors.go).
package requests
