// Package gpu measures what devices did and what they waited for: compute, communication and copies,
// alone and overlapped, idle time with its cause, launch delay, and the time of steps and kernels rank
// by rank. With the kernel classes of Holistic Trace Analysis, its numbers are those of that tool.
//
// It is a large package because one pass over the rows of a device finds everything: busy times, the
// reason for each gap, and the kernels that were held back need the same rows in the same order.
package gpu
