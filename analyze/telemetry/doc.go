// Package telemetry sums up what servers say about themselves over time, in logs and metrics: how many requests run
// and wait by rank, how full the KV cache is, what their histograms count between scrapes, and what happened when.
// [Metrics] are all other metrics, by GPU, host and server; percentiles that come out of buckets of histograms are
// intervals. docs/METRICS.md defines the numbers.
//
// Packages of their own find what is wrong: failed (what ended, hung, or was taken away), and slow (where requests take
// longer, and why).
package telemetry
