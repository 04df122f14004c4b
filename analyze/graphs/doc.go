// Package graphs says which operator, module and layer each kernel of a CUDA graph belongs to.
//
// A trace of a replay has one call and the kernels below it, and nothing that explains them. What a
// server recorded while it captured the graph has the launches of these kernels, in order, below the
// operators and Python functions that made them.
//
//   - A [Capture] is what was launched between the begin and the end of one capture (capture.go).
//   - A [Launch] is one replay with its kernels, in order (replay.go).
//   - The capture of a replay follows from the tokens of its step and from the sequence
//     itself (graphs.go). Kernels are paired with launches by their place; names, grids and
//     numbers of nodes prove it where they were recorded (match.go).
//
// If only one side has a launch, the alignment of both sequences skips it. If two places fit equally
// well and say different things, the kernel stays without an operator.
package graphs
