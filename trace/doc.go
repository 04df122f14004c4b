// Package trace defines the basic types that every reader, report, and writer uses: times, symbols,
// arguments, ranks, and messages; and the timeline that is drawn.
//
// Strings are interned ([Sym]), time is int64 nanoseconds ([Time]), arguments are stored encoded in one
// arena ([Args]), and a problem with an input is a counted [Diag] at a position. The tables of requests and
// profiles, in packages request and profile, are built from these.
//
// A [Trace] is a timeline: a drawing of such tables for writers, not the model itself, and no report reads
// it. It is a set of flat, typed tables that refer to each other by index: tracks, slices, instants,
// samples, and flows. Zero always means none: index 0 of tracks, slices, and subjects is reserved. The only
// way in is a [Builder]. Its methods do not return errors: anything that cannot be represented becomes a
// [Diag] at the position that the caller set. [Builder.Finish] sorts each track and makes its slices nest,
// so that writers need no repairs of their own; [Validate] states the resulting invariants and runs on
// every timeline in tests.
//
// Within this module, the package imports only small helpers below internal.
package trace
