// Package overtime measures devices and their machines over time: how busy devices were, how much
// they communicated, how much work was queued, what counters were sampled, and when any of
// this changed.
//
// [Collect] makes a collector that [gpu.Measure] tells what devices do. It holds numbers for
// each bucket and device, and no rows: only of programs that are no servers, when each kernel
// was launched and ran, until the steps are known.
package overtime
