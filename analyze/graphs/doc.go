// Package graphs says which operator, module and layer each kernel of a CUDA graph is of.
//
// A trace of a graph's replay has one call, and kernels below it that nothing else says anything
// of. What a server recorded while it captured the graph has the launches of these kernels, in
// order, below the operators and the functions of Python that asked for them.
//
//   - A [Capture] is what was launched between the begin and the end of one capture (capture.go).
//   - A [Launch] is one replay with its kernels, in order (replay.go).
//   - Which capture a replay is of follows from the tokens of its step and from the sequence
//     itself (choose.go). Kernels are paired with launches by their place; names, grids and
//     numbers of nodes prove it where they were recorded (match.go).
//
// A launch that only one side has costs itself: an alignment of both sequences goes around it. Where
// two places fit equally well and differ in what they say, the kernel stays without an operator.
package graphs
