// Package telemetry sums up what servers report about themselves over time, in logs and metrics: how many requests
// run and wait on each rank, how full the KV cache is, what histograms count between scrapes, and which events
// happened when. [Metrics] holds all other metrics, by GPU, host, and server; percentiles from the buckets of
// histograms are intervals. docs/METRICS.md defines the numbers.
//
// Other packages find problems in them: failed (what ended, hung, or was taken away), held (what holds up requests
// besides load), and slow (where requests take longer, and why).
package telemetry
