// Package gpuloss says what GPUs lose time to, and what of their work could be faster.
//
// What is lost are findings: idle time and its reasons, the start of a process, communication and
// copies that nothing hides, steps without CUDA graphs, kernels of one block, calls that failed.
// Package gpu measures it.
//
// What could be faster are [Opportunities], by how much at most, and what would make it so:
//
//   - Kernels that are far from their roof (package operators has the roofs).
//   - Neighbors on a stream that one kernel could do, by a table of ordered [patterns] of what they
//     compute, if they come in about every layer.
//   - Kernels that do not fill the GPU ([Fill]).
//   - Exchanges of tokens between GPUs that wait alone, and shared experts that could run meanwhile.
//   - Replays of a graph that was captured for more tokens than the step has.
//
// Each has an upper bound: the time of all but the longest of some neighbors, or the time above the roof.
// Only the arithmetic is certain: to know whether a switch helps, measure.
package gpuloss
