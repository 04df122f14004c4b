// Package torch writes, for a part of a run of the simulator, the traces that PyTorch's profiler would have left, one for
// each scheduler.
//
//  1. A [Config] selects what was recorded. [NewProfile] finds the steps in it, and
//     divides each into segments that end in a collective (group.go).
//  2. The run has the begin and the end of a step. [Capture.Passes] makes up its inside, the calls and
//     kernels of each rank (layout.go, with the model of
//     table.go). Package nsys writes these same events in its own format, which is
//     why they are exported.
//  3. [Write] writes them as libkineto would have (write.go, event.go).
//
// Three kinds of dumps, all of them pickles, do not come from a run:
//
//   - An [Allocator] makes up allocations, and [MemorySnapshot] writes a memory snapshot of them as Python's pickle does
//     with protocol 4.
//   - [WriteHang] simulates ranks that enter collectives, one of which goes wrong, and writes the dumps of their flight
//     recorders (hang.go), or logs (logs.go).
//   - [PlayExperts] simulates a server whose tokens choose experts, and writes the dumps of SGLang's recorder.
//
// Steps are at the times that they have in the run. Times are true time until they are written.
package torch
