// Package diff compares two captures, or two windows of one: setup, load, latencies, stages,
// steps, where the time of devices went, kernels, copies and waits, each with a test of
// significance. Observations are pieces of time, not spans: spans of one batch share their
// time, and a test over them would find everything significant.
package diff
