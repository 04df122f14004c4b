// Package measured compares what logs and metrics of two captures say: levels, rates, what is asked of servers, and what buckets
// count of latencies. What their steps take, it hands to pace.
package measured
