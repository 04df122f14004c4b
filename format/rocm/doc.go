// Package rocm reads the output of profilers of AMD's ROCm: [Rocpd] and [RPD] databases, and JSON and
// Perfetto traces of [Rocprof]. A recorder makes profiles from typed rows, whoever wrote them.
//
// # What is odd
//
//   - Times count from the boot of the host (CLOCK_BOOTTIME or CLOCK_MONOTONIC), so that files
//     of one host share a clock, but the time of the boot is unknown.
//   - A grid is counted in work-items, where CUDA counts blocks. We convert the arguments of kernels to
//     blocks.
//   - The names of copies follow four conventions.
package rocm
