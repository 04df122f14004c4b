// Package profile is the part of the event model that is about what profilers record of
// a rank: which kernels ran on which stream, which call launched them, what annotations
// lay around it. It is to ranks what package request is to requests.
//
// There are two forms of it:
//
//   - A [Profile] holds one recording: rows (threads, streams, counters), events on rows, each
//     a [Slice] of some kind, collectives, and steps. Timelines are drawn of it, and
//     [Profile.Stream] passes it as a Set has it.
//   - A [Set] is all ranks, for reports. Nothing of it is held: a [Stream] passes kernels,
//     copies, calls and ranges, one row at a time.
//
// Two formats become profiles: the traces of PyTorch's profiler (package chrometrace) and
// the exports of Nsight Systems (package nsysexport). This package knows neither. What a
// format does not tell is unknown (-1 or "", see each field), so that what follows
// (ranks, clocks, timelines, reports) need not ask where a profile came from.
//
// What names of steps mean is in tables in step.go; those of kernels are in package kernelname.
//
// Times are nanoseconds, on the clock of the host that recorded them.
package profile
