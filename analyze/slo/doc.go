// Package slo says which requests meet a service-level objective, as 'sgtrace report --slo
// ttft=500ms,itl=50ms' asks: how many of them (goodput), when, on which ranks, and what made the
// others miss it. An [Objective] is a limit for one latency of a request; a request meets the
// SLO if it finished and keeps all limits. docs/METRICS.md has the definitions.
package slo
