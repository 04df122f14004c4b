// Package gpu measures what devices did and what they waited for: compute,
// communication and copies, alone and overlapped, idle time with its cause, launch
// delay, and the time of steps and kernels rank by rank. Under the classes of Holistic
// Trace Analysis the numbers are those of that tool.
//
// It is large for a package, as all of it is found in one pass over the rows of a device: what is busy, the
// reason of each gap, and which kernels were held back need the same rows in the same order.
package gpu
