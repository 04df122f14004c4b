// Package diff compares two captures, or two windows of one: setup, load, latencies, stages, steps, where the time of
// devices went, kernels, copies, and waits, each with a test of significance. Observations are pieces of time, not
// spans: spans of one batch share their time, and a test on spans would find everything significant.
//
// Its subpackages don't depend on it: compare tests how one amount differs, pace how long steps of servers take for
// their work, and measured compares logs and metrics. This package is still long on purpose: what it collects from
// requests and profilers, the comparison of both sides, and the verdict in words all work on the same rows.
package diff
