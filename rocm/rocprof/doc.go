// Package rocprof reads the JSON that rocprofv3 writes with --output-format json
// (*_results.json).
//
// # What is odd
//
//   - Records have numbers instead of names: of a kernel, of the kind of a call, of the operation
//     within it. The tables of names come first in the file.
//   - The text of a roctx range is in a list of its own, by the correlation id of its record.
//   - The list of metadata holds the command and, since ROCm 7, the environment of the process:
//     neither is read.
//   - An id of a stream or an agent is an object with a handle.
package rocprof
