// Package load measures what went on over time: arrivals, requests running and queued,
// tokens, latencies, in buckets of time, for the whole deployment, every role and every
// rank. Change points are searched in it (package change), ranks are compared by it
// (package rank), and captures are (package diff). docs/METRICS.md defines the numbers.
package load
