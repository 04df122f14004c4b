// Package kernel sums up what profilers recorded by name: kernels, launches, CUDA calls,
// copies, NVTX ranges, and the kernels that ranges launched. The numbers are those of
// 'nsys stats'.
package kernel
