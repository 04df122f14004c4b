// Package inputs finds the files that a command names, takes off their envelopes,
// recognizes their format by content, and indexes them: the first step of reading.
//
//   - [Formats] is the one table of formats. Adding a format is its package and one line
//     there.
//   - [Find] turns arguments into a list of [Input].
//   - [Load] reads of every input what decides who is who and how clocks relate, and
//     keeps the events that a later step will need and could read only by opening the
//     file again. An input that cannot be used is reported and left out.
//   - [Runs] divides inputs of weeks into runs, which can be read one after another.
//
// Dumps of requests become one [request.Set], whatever their number; what a profiler
// recorded becomes a [ProcessProfile] for each process or file. Which recording is of which
// rank is decided by package ranks.
package inputs
