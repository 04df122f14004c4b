// Package profile holds what profilers record of a rank: which kernels ran on
// which stream, which call launched them, what annotations lay around it. It is to
// ranks what package request is to requests.
//
// Two formats become profiles: the traces of PyTorch's profiler (package
// chrometrace) and the exports of Nsight Systems (package nsysexport). Some know
// more than others, and what nobody told is unknown, so that what follows (ranks,
// clocks, timelines, reports) need not ask where a profile came from.
//
// What names mean is in tables: communication.go, step.go.
package profile
