// Package inputs finds the files that a command names, undoes their envelopes,
// recognizes their format by content, and indexes them: step one of reading.
//
//   - [Formats] is the one list of formats. Adding a format is its package and one line
//     there.
//   - [Find] turns arguments into a list of [Input]; [Open] opens one.
//   - [Index] reads of every input what decides who is who and how clocks relate, and
//     keeps events that a later step will draw. An input that cannot be used is reported
//     and left out.
//
// Which recording is of which rank is decided by package ranks.
package inputs
