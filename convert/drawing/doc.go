// Package drawing draws requests and ranks as a [trace.Trace], a timeline: tracks by
// process, by request and by rank, lanes in which nothing overlaps in part, arrows from
// slice to slice.
//
// It reads the tables of the model and decides nothing about ranks or clocks. [Layout]
// draws requests alone, [Draw] all that was merged. Drawing recordings gives up their
// events, so it can be done only once. Package convert writes the result.
//
// It is one long package on purpose: the views, one file each, share the layout (units, lanes, scopes)
// and draw into one set of tracks, which arrows connect. Counters of logs and metrics share none of that: see package counters.
package drawing
