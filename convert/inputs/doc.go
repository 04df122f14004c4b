// Package inputs finds the files that a command names, removes their envelopes (compression and the like),
// recognizes their format by content, and indexes them: the first step of reading.
//
//   - [Formats] is the one table of formats. To add a format, write its package and add one line
//     there.
//   - [Find] turns arguments into a list of [Input].
//   - [Load] reads from every input what decides which process each recording is from, and how
//     clocks relate. It keeps events that a later step needs and could get only by reading the
//     file again. An input that cannot be used is reported and left out.
//   - [Runs] divides inputs of weeks into runs, which can be read one after another.
//
// All dumps of requests become one [request.Set]; a profiler's recording becomes a [ProcessProfile]
// for each process or file. Package ranks decides which rank each recording is from.
package inputs
