// Package trace is the event model that every reader fills and every writer
// and report reads.
//
// A [Trace] is a set of flat, typed tables that refer to each other by index:
// tracks, slices, instants, samples and flows. Strings are interned ([Sym]),
// time is int64 nanoseconds ([Time]), arguments live encoded in one arena
// ([Args]). Zero always means none: index 0 of every table is reserved.
//
// The only way in is a [Builder]. Its methods do not return errors: what cannot
// be represented becomes a counted [Diag] at the position that the reader set.
// [Builder.Finish] sorts each track and makes its slices nest, so that writers
// need no repair of their own; [Validate] states the resulting invariants and
// runs on every model in tests.
//
// The package imports nothing of this module.
package trace
