// Package rocm reads what profilers of AMD's ROCm write: [Rocpd] and [RPD] databases, and JSON and
// Perfetto traces of [Rocprof]. A recorder makes profiles of typed rows, whoever wrote them.
//
// # What is odd
//
//   - Times count from the boot of the host (CLOCK_BOOTTIME or CLOCK_MONOTONIC), so that files
//     of one host have one clock, and nothing says when that was.
//   - A grid is counted in work-items, where CUDA counts blocks. Arguments of kernels have
//     blocks, as those of others.
//   - Copies are called by four conventions.
package rocm
