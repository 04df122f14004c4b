// Package diff compares two captures: latencies, stages, steps, kernels and copies, each
// with a test of significance. Observations are pieces of time, not spans: spans of one
// batch share their time, and a test over them would find everything significant.
package diff
