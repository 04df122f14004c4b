// Package telemetry reports what servers say about themselves over time, in logs and metrics: how many
// requests run and wait by rank, how full the KV cache is, what is retracted, what fails, and
// since when. [Metrics] are all other metrics, by GPU, host and server; percentiles that come out of
// buckets of histograms are intervals. docs/METRICS.md defines the numbers.
//
// It is large for a package, as each finding is a reader of the same [Logged]: a file for each of them.
package telemetry
