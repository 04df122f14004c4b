// Package opportunity says what of the work of GPUs could be faster, by how much at most, and what would
// make it so.
//
//   - Kernels that are far from their roof (package operators has the roofs).
//   - Neighbors on a stream that one kernel could do, by a table of ordered [patterns] of what they
//     compute, if they come in about every layer.
//   - Kernels that do not fill the GPU ([Fill]).
//   - Exchanges of tokens between GPUs that wait alone, and shared experts that could run meanwhile.
//   - Replays of a graph that was captured for more tokens than the step has.
//
// What is told is an upper bound: the time of all but the longest of some neighbors, or the time above the
// roof. What is said to be certain is arithmetic; whether a switch helps, a measurement tells.
package opportunity
