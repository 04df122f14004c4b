// Package reports is the table of what 'sgtrace report' can report. A [Report] is a row:
// the flag that asks for it, what it says, which inputs it needs, which flags it takes,
// and the function that makes it.
//
// Everything that the command knows of its reports follows from [All]: which one is asked
// for and which flags exclude each other ([Choose]), the flags themselves, and so help,
// completion and the manual page ([Flags]), and docs/REPORTS.md. To add a
// report is to add a row.
//
// A report sees what was read as a [Reading]. How files are read, selected, redacted and
// printed is the program's part.
package reports
