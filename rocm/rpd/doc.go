// Package rpd reads the SQLite files of rocmProfileData (trace.rpd), which SGLang's activity RPD,
// runTracer.sh, and loadTracer.sh record. All ranks of a host are in one file.
//
// # What is odd
//
//   - Kernels that a graph ran are of the type Task, all others of KernelExecution. A copy has no
//     description, its type says what it is.
//   - roctx ranges are kept as marks: calls named UserMarker without duration, whose text is among
//     their arguments.
//   - The tables are named as those of rocpd, which is another format.
//   - One text may have several ids.
//   - In version 3, the argument of a call is in a table of its own, rocpd_ustring.
//   - AMD's pages say that times are in microseconds; they are nanoseconds.
//   - With the source rocprofiler-sdk (2026), operations count from the boot and calls without the
//     time that the host slept, and all copies are of GPU 0.
//   - Under loadTracer.sh, the file may have been unlinked; the one beside it is then empty.
package rpd
