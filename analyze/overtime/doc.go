// Package overtime tells how devices and their machines went on over time: how busy devices
// were, what they communicated, how much work was queued, what counters were sampled, and
// when any of this changed.
//
// [Collect] makes a collector that [gpu.Measure] tells what devices do. It holds numbers for
// each bucket and device, and no rows.
package overtime
