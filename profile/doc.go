// Package profile is the part of the event model for what profilers record of a rank: which kernels ran on
// which stream, which call launched them, which annotations were around it. It is to ranks what package request
// is to requests.
//
// There are two forms of it:
//
//   - A [Profile] holds one recording: rows (threads, streams, counters), events on rows, each a [Slice] of
//     some kind, collectives, and steps. Timelines are drawn from it, and [Profile.Stream] converts it to a
//     stream for a Set.
//   - A [Set] is all ranks, for reports. It holds no events: a [Stream] passes kernels, copies, calls, and
//     ranges, one row at a time.
//
// Two formats become profiles: the traces of PyTorch's profiler (package chrometrace) and the exports of Nsight
// Systems (package nsysexport). This package knows neither. Data that a format lacks is unknown (-1 or "", see
// each field), so that later stages (ranks, clocks, timelines, reports) need not know where a profile came
// from.
//
// The meanings of step names are in tables in step.go; those of kernel names are in package kernelname.
//
// Times are nanoseconds, on the clock of the host that recorded them.
package profile
