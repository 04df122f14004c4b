// Package writer writes a [trace.Trace] as Chrome JSON ("Trace Event Format"), for
// chrome://tracing, Perfetto and scripts.
//
// The format has less than the model. There are no nested tracks, so the tree
// becomes processes and threads (layout.go); an event has no wall-clock time, so
// times count from a base that the header tells; nothing holds the color of a
// subject or the description of a track. The native format keeps all of that. Names
// of rows of a rank tell what is true beside the numbers that were made up, so that
// chrometrace.Read makes the same rank of them (rank.go).
//
// Three things make importers lose or distort data, and are avoided here:
//
//   - Slices that overlap in part are dropped or moved by Perfetto. Those of a
//     finished trace nest.
//   - An escaped surrogate pair (\ud83d\ude00) aborts Perfetto's import, so
//     text is raw UTF-8.
//   - Times are read into a float64, which at the scale of the epoch has a step
//     of 250 ns. Relative to the base, three decimals of a microsecond are exact
//     for a hundred days.
//
// The format is described in "Trace Event Format" (Chromium); statements about
// Perfetto were checked against trace_processor v58.2.
package writer
