// Package torch writes, for a part of a run of the simulator, the traces that
// PyTorch's profiler would have left, one for each scheduler.
//
//  1. A [Config] says what was recorded. [NewProfile] finds the steps in it, and
//     divides each into segments that end in a collective (group.go).
//  2. The run knows when a step began and ended. What is in it, the calls and
//     kernels of each rank, [Capture.Passes] makes up (layout.go, with the model of
//     table.go). Package nsys writes these same events in its own format, which is
//     why they are exported.
//  3. [Write] writes them as libkineto would have (write.go, event.go).
//
// A snapshot of memory does not come from a run: an [Allocator] makes up what it did, and
// [MemorySnapshot] writes it as Python's pickle does with protocol 4. Neither do two other kinds of dumps,
// which are pickles, too:
//
//   - [WriteHang] simulates ranks that enter collectives, one of which goes wrong, and writes what flight
//     recorders would dump of them (hang.go), or logs (logs.go).
//   - [PlayExperts] simulates a server whose tokens choose experts, and writes what SGLang's recorder would dump.
//
// Steps lie where they were in the run. Times are true time until they are written.
package torch
