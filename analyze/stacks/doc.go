// Package stacks says where the time of threads and devices went, by stack.
//
// A stack is what package host makes of a thread: ranges, Python functions, operators and
// calls, the outermost first. There are two times:
//
//   - [CPU] is the time of a thread in the innermost frame. All stacks together are the time
//     in which threads did anything that was recorded.
//   - [GPU] is the time of kernels, copies and fills, below the stack of the call that launched
//     them. All stacks together are the time of all of these.
//
// Each stream is read once (collect.go), thread by thread, into a tree of stacks (tree.go):
// what is held grows with how many different stacks there are, and with the events of the
// streams that are read at the moment. Trees are merged, become rows (stacks.go) and tables
// (report.go), and boxes to be drawn (flame.go).
//
// Exports of Nsight Systems have stacks of functions (samples.go): those of calls are around the
// calls, and samples tell what a thread ran where nothing else does.
//
// What a thread waits in (a lock, a sleep, a poll) ends in the frame "(idle)": its time is no
// part of what the frames around it took.
package stacks
