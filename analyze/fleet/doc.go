// Package fleet compares the runs of weeks: which GPU, which host, and which pair of hosts is late
// or slow in run after run, what each kind of finding costs in GPU-hours, and when step times and
// versions changed.
//
// A run is inputs that were recorded at about the same time. Reduce makes a [Run] of what the
// finders of package finders say about it, so that a fleet needs memory for one run at a time.
// A Fleet holds the runs, and answers from them alone.
package fleet
