// Package parse returns the content of a file of Chrome JSON, in batches: events, rows,
// names and members of the header as they are, in the order of the file. Package chrometrace
// settles what only the whole file tells, and makes a profile of all that.
//
// [Read] does it on all cores, and no result depends on how the input is cut:
//
//  1. A cutter cuts the input into pieces of a megabyte where it looks as if one
//     event ended and another began (cut.go).
//  2. Parsers read pieces (document.go, event.go, value.go), supposing that they
//     begin between two events, and record what they find in a [Batch] (record.go,
//     async.go).
//  3. A piece counts if the one before ended exactly where it begins; otherwise the
//     input is read on from there (sequence.go).
//
// An event that is no valid JSON is read a second time, in the ways in which
// Kineto is known to fail (string.go). If that does not help, it is lost, and
// reading goes on at the next thing that looks like an event (resync.go).
//
// The quirks of producers are in tables: kineto.go. Package chrometrace
// describes them all.
package parse
