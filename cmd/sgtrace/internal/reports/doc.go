// Package reports is the table of the reports of 'sgtrace report'. A [Report] is a row: the flag that asks
// for it, what it says, which inputs it needs, which flags it takes, and the function that makes it.
//
// Everything that the command knows about its reports follows from [All]: which one is asked for and which
// flags exclude each other ([Choose]), the flags themselves ([Flags]) and hence help, completion, and the
// manual page, and docs/REPORTS.md. To add a report, add a row.
//
// A report gets what was read as a [Reading]. The program reads, selects, redacts, and prints.
package reports
