// Package operators sums up the operators of PyTorch: their calls, the time of threads in
// them, and the time of devices that they asked for, by name and by the shapes of their
// inputs.
//
// The frames of each thread are put in order, so that each knows the one around it
// (thread.go). A call into CUDA belongs to the innermost operator that it begins in, and what
// it launched belongs to that operator and, in the totals, to all around it (collect.go). What
// no operator launched has rows of its own, so that the self times of devices add up to the
// time of all kernels and copies. Modules are summed up in the same way (module.go).
package operators
