// Package rocprof reads what rocprofv3 writes with --output-format json (*_results.json) and
// pftrace (*_results.pftrace).
//
// # What is odd
//
//   - Records have numbers instead of names: of a kernel, of the kind of a call, of the operation
//     within it. The tables of names come first in the file.
//   - The text of a roctx range is in a list of its own, by the correlation id of its record.
//   - The list of metadata holds the command and, since ROCm 7, the environment of the process:
//     neither is read.
//   - An id of a stream or an agent is an object with a handle.
//   - With --pmc alone, kernels are where their counters are, and in no other list.
//
// Of Perfetto traces:
//
//   - They say when the host booted, as no other form does: clocks are read beside each other.
//   - Where two kernels of a queue overlap, both are said to meet in the middle. Of grids and
//     workgroups, there are products only. So JSON and databases beside are read instead.
//   - Agents have numbers as 'Agent-4', which count CPUs, too, or as 'GPU-0', as the user wanted.
//   - Events of one stream may overlap and are not in order: their ends are in their arguments.
//   - Arguments that are floating-point numbers are values of hardware counters.
//   - Tracks of memory end with a 0 that nobody freed. Those of copies and counters repeat what
//     copies and kernels say.
//   - The command line is in the description of the process, and never read.
package rocprof
