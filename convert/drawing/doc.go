// Package drawing draws requests and ranks as a [trace.Trace], a timeline: tracks by process, by request, and by rank,
// split into lanes in which slices nest properly, with arrows from slice to slice.
//
// It reads the tables of the model and decides nothing about ranks or clocks. [Layout] draws requests alone, [Draw]
// everything that was merged. Drawing a recording releases its events, so it works only once. Package convert writes
// the result.
//
// This is one long package on purpose: its views, one file each, share the layout (units, lanes, scopes) and draw into
// one set of tracks, which arrows connect. The counters of logs and metrics share none of that: see package counters.
package drawing
