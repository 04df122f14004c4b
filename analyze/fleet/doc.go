// Package fleet compares runs over weeks: which GPU, which host, and which pair of hosts is late or slow in run after run, what
// each kind of finding costs in GPU-hours, and when step times and versions changed.
//
// A run is a set of inputs recorded at about the same time. [Reduce] keeps only what the finders of package finders say about
// it, as a [Run], so that memory is needed for one run at a time. A [Fleet] combines the runs.
package fleet
