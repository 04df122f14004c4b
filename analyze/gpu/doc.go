// Package gpu measures what devices did and what they waited for: compute,
// communication and copies, alone and overlapped, idle time with its cause, launch
// delay, and the time of steps and kernels rank by rank. Under the classes of Holistic
// Trace Analysis the numbers are those of that tool.
package gpu
