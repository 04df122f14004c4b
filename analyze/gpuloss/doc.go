// Package gpuloss says what GPUs lose time to, and what of their work could be faster.
//
// Losses are findings: idle time and its reasons, the start of a process, communication and copies that
// nothing hides, steps without CUDA graphs, kernels of one block, failed calls. Package gpu measures them.
//
// [Opportunities] are what could be faster, by how much at most, and how:
//
//   - Kernels that are far from their roof (package operators has the roofs).
//   - Neighbors on a stream that one kernel could replace, by a table of ordered [patterns] of what
//     they compute, if they occur in about every layer.
//   - Kernels that do not fill the GPU ([Fill]).
//   - Exchanges of tokens between GPUs that wait alone, and shared experts that could run meanwhile.
//   - Replays of a graph that was captured for more tokens than the step has.
//
// Each has an upper bound: the time of all but the longest of some neighbors, or the time above the
// roof. Only the arithmetic is certain: to know whether a switch helps, measure.
package gpuloss
