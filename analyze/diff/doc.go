// Package diff compares two captures, or two windows of one: setup, load, latencies, stages,
// steps, where the time of devices went, kernels, copies and waits, each with a test of
// significance. Observations are pieces of time, not spans: spans of one batch share their
// time, and a test over them would find everything significant.
//
// It is one long package on purpose: what is collected of each side, the rows that compare both, and
// the verdict in words all work on the same pieces and rows. The setup, which stands alone, is a single
// file.
package diff
