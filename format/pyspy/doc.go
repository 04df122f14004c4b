// Package pyspy reads dumps of py-spy: where the threads of processes stand, as text (py-spy dump) and as JSON
// (--json), one file a process or several in one. The logs of servers have such dumps among their lines: package
// serverlog reads these. What lines look like is in package flight/printed.
//
// # What is odd
//
//   - A dump has no time, and no rank but in the title of its process, "sglang::scheduler_TP3". Neither has the JSON form.
//   - With --locals, values of variables follow: prompts are among them, and none is read.
//   - The state of a thread is a guess from that of the operating system: one that waits for a device is often "active".
//   - With --subprocesses, blocks are divided by a line of dashes.
package pyspy
