// Package convert reads inputs of any kind, decides what belongs together, and passes
// it on: as a timeline to be written, or as tables for reports. Its folders do one job
// each, in this order:
//
//	inputs     finds, opens, recognizes and indexes inputs; has the one table of formats
//	ranks      decides which recording is of which rank, and what was recorded twice
//	clocks     puts the clocks of all hosts on one
//	drawing    draws requests and ranks as a timeline
//	output     writes a timeline to a file that appears whole or not at all
//
// This package calls them. The order is always the same: index all inputs, decide, then
// pass the events once.
//
//   - For a timeline: [Read], then Align, then [Merge.Layout]. A window of time is read
//     again by [Merge.ReadWindow], once clocks are known.
//   - For reports: [Read], then [Merge.Evidence], the tables that reports look at.
//   - For a list of what inputs hold: [Inspect].
//   - For a dataset: [Extract] writes each input by itself, so that any number of processes can
//     share the work: nothing is decided there that needs another input. [Solve] adds what all of
//     them say together.
//
// What an input has in common with one of another format is decided here once, for
// timelines and reports alike. Neither formats nor reports are known in this package.
package convert
