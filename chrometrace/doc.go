// Package chrometrace reads and writes Chrome JSON ("Trace Event Format"): what
// the PyTorch profiler (libkineto) and many other tools write, and what
// chrome://tracing, Perfetto and scripts read.
//
// # Reading
//
// [Read] turns a trace of any size, dialect and state of repair into a [File]:
//
//  1. A cutter cuts the input into pieces of a megabyte where it looks as if one
//     event ended and another began (cut.go).
//  2. Parsers read pieces on all cores (document.go, event.go, value.go), supposing
//     that they begin between two events, and record what they find in batches
//     (record.go, collective.go, async.go).
//  3. A collector takes the batches in order. A piece counts if the one before
//     ended exactly where it begins; otherwise the collector reads on by itself
//     from there (collect.go). So no result depends on the cuts.
//  4. What only the whole file tells is settled at the end: the base of its times,
//     names and numbers of rows (finish.go).
//
// An event that is no valid JSON is read a second time, in the ways in which
// Kineto is known to fail (string.go). If that does not help, it is lost, and
// reading goes on at the next thing that looks like an event (resync.go). What was
// repaired is a notice, what was lost is a data loss, each with a count and the
// first place.
//
// What is known about producers is in tables: kineto.go, collective.go, step.go.
//
// # Writing
//
// [Write] writes a [trace.Trace]. The format has less than the model. There are no
// nested tracks, so the tree becomes processes and threads (layout.go); an event
// has no wall-clock time, so times count from a base that the header tells;
// nothing holds the colour of a subject or the description of a track. The native
// format keeps all of that.
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
package chrometrace
