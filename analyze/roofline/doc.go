// Package roofline compares the time of kernels with the least their GPU could take (the roofline model).
//
//   - [GPUOf] has what GPUs are made for: operations and bytes in a second, by their data sheets.
//   - [WorkOf] has what an operator must compute and move at least, by its name and the shapes and
//     types of its inputs; [AttentionWork] needs the lengths of sequences, too.
//
// The roof of some work is the time that the GPU needs for its operations or for its bytes, whichever is
// longer. It is a bound: whatever is read counts once, and caches count as if they were not there. A
// kernel that is faster than its roof shows that the work is not what the formula says.
package roofline
