// Package measured compares what logs and metrics of two captures say: levels, rates, the demand on servers, and latencies
// that are counted in buckets. It hands the times of steps to package pace.
package measured
