// Package parse returns the content of a file of Chrome JSON in batches: events, rows, names, and members of
// the header as they are, in the order of the file. Package chrometrace handles everything that depends on the
// whole file, and makes a profile.
//
// [Read] does it on all cores, and the result does not depend on how the input is cut:
//
//  1. A cutter cuts the input into pieces of a megabyte where one event seems to end
//     and another to begin (cut.go).
//  2. Parsers read pieces (document.go, event.go, value.go), assuming that they
//     begin between two events, and record what they find in a [Batch] (record.go,
//     async.go).
//  3. A piece counts if the one before ended exactly where it begins; otherwise the
//     input is read on from there (sequence.go).
//
// An event that is not valid JSON is read a second time, allowing for the known errors of Kineto (string.go).
// If that does not help, it is lost, and reading goes on at the next thing that looks like an event
// (resync.go).
//
// Tables list the quirks of producers: kineto.go. Package chrometrace describes them all.
package parse
