// Package convert reads inputs of any kind, decides what belongs together, and passes it on: as a
// timeline to write, or as tables for reports. Each of its folders does one job, in this order:
//
//	inputs     finds, opens, recognizes and indexes inputs; has the one table of formats
//	ranks      decides which rank each recording is from, and what was recorded twice
//	clocks     puts the clocks of all hosts on one
//	drawing    draws requests and ranks as a timeline
//	verify     compares a file with the timeline it was written from
//
// This package calls them. The order is always the same: index all inputs, decide, then
// pass the events once.
//
//   - For a timeline: [Read], then Align of package clocks, then Draw of package drawing. Once the
//     clocks are known, [ReadWindow] can read a window of time again. [CreateOutput] makes the file: it
//     is written in the format that its extension asks for, appears whole or not at all, and is read
//     back and compared if the user asks for that. It never replaces a file that is also an input, or
//     that its owner write-protected.
//   - For reports: [Read], then [ForReports], the tables that reports look at.
//   - For a list of what inputs hold: [Inspect].
//   - For a dataset: [Extract] writes each input by itself, so that any number of processes can share
//     the work: no decision there needs another input. [Solve] adds what all of them say together.
//
// Whatever inputs of different formats have in common is decided here once, for timelines and
// reports alike. This package knows neither the formats of inputs nor any report.
package convert
