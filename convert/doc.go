// Package convert reads inputs of any kind, decides what belongs together, and passes
// it on: as a timeline to be written, or as tables for reports. Its folders do one job
// each, in this order:
//
//	inputs     finds, opens, recognizes and indexes inputs; has the one table of formats
//	ranks      decides which recording is of which rank, and what was recorded twice
//	clocks     puts the clocks of all hosts on one
//	drawing    draws requests and ranks as a timeline
//	verify     compares a file with the timeline that it was written from
//
// This package calls them. The order is always the same: index all inputs, decide, then
// pass the events once.
//
//   - For a timeline: [Read], then Align of package clocks, then Draw of package drawing. A window
//     of time is read again by [ReadWindow], once clocks are known. [CreateOutput] is the file: it is
//     written in the format that the extension of its name asks for, appears whole or not at
//     all, and is read back and compared if the user asks for that. A file that is an input,
//     or that its owner protected, is never replaced.
//   - For reports: [Read], then [ForReports], the tables that reports look at.
//   - For a list of what inputs hold: [Inspect].
//   - For a dataset: [Extract] writes each input by itself, so that any number of processes can
//     share the work: nothing is decided there that needs another input. [Solve] adds what all of
//     them say together.
//
// What an input has in common with one of another format is decided here once, for timelines and
// reports alike. This package knows neither the formats of inputs nor any report.
package convert
