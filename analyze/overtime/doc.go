// Package overtime measures devices and their machines over time: how busy devices were, how much they
// communicated, how much work was queued, what counters were sampled, and when any of this changed.
//
// [Collect] returns a collector to which [gpu.Measure] reports what devices do. It keeps numbers per
// bucket and device, not rows. The exception is programs that are not servers: it keeps when each of
// their kernels was launched and ran until their steps are known.
package overtime
