// Package host says what threads of the host did: the one stack of a thread that its calls, operators,
// Python functions and ranges make together.
//
//   - [Read] passes everything that threads did in a stream, and [Frames] sorts what a thread did.
//   - A [Sweep] over the frames knows the stack at any moment.
//   - [Names] know what the name of a frame says: a lock, a library, an object whose address
//     differs from call to call.
//   - [FunctionOf] says whose code a function is, for stacks that were recorded as a whole.
//
// What the stack is used for is up to the reports: why a device was idle (package gaps), or where the
// time went, by stack, which is [Stacks]. There are two times:
//
//   - [CPU] is the time of a thread in the innermost frame. All stacks together are the time
//     in which threads did anything that was recorded.
//   - [GPU] is the time of kernels, copies and fills, below the stack of the call that launched
//     them. All stacks together are the time of all of these.
//
// Each stream is read once (collect.go), thread by thread, into a tree of stacks (flame.go): memory
// grows with the number of different stacks, and with the events of the streams that are being read.
// Exports of Nsight Systems have stacks of functions (samples.go): those of calls are around the calls,
// and samples show what a thread ran where nothing else does. What a thread waits in (a lock, a sleep,
// a poll) ends in the frame "(idle)": its time is not part of what the frames around it took.
package host
