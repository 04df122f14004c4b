// Package operators sums up the operators of PyTorch: their calls, the time of threads in them, and the
// time of devices that they asked for, by name and by the shapes of their inputs.
//
// The frames of each thread are sorted, so that each knows the one around it (thread.go). A call into CUDA
// belongs to the innermost operator that it begins in, and what it launched belongs to that operator and, in the
// totals, to all around it (collect.go). What no operator launched has rows of its own, so that the self times
// of devices add up to the time of all kernels and copies. Modules are summed up in the same way (operators.go).
//
// The time of kernels is compared with the least that their GPU could take (the roofline model): [GPUOf] has what GPUs
// can do, in operations and bytes per second, by their data sheets; workOf (work.go) has what an operator must compute
// and move at least, by its name and the shapes and types of its inputs. The roof of some work is the time that the
// GPU needs for its operations or for its bytes, whichever is longer. It is a bound: whatever is read counts once, and
// caches do not count. A kernel that is faster than its roof shows that the work is not what the formula says.
package operators
