// Package rocm holds what profilers of AMD's ROCm have in common, however they write it: a
// [Recorder] makes profiles of typed rows, and a [Database] passes the rows of SQLite files.
// The formats are in packages below: rocpd, rpd, and rocprof.
//
// # What is odd
//
//   - Times count from the boot of the host (CLOCK_BOOTTIME or CLOCK_MONOTONIC), so that files
//     of one host have one clock, and nothing says when that was: see [Process.Boot].
//   - A grid is counted in work-items, where CUDA counts blocks. Arguments of kernels have
//     blocks, as those of others.
//   - Copies are called by four conventions; [CopyName] knows them.
package rocm
