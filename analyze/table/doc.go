// Package table holds the result of a report as typed cells, and renders it as text, Markdown, CSV, or JSON.
//
//  1. A report describes its columns (name, unit, doc) once, and how to compute the cell of a row. Cells are
//     computed on demand, so that a table of a million rows costs nothing until it is written.
//  2. Sort, Limit, and Redact work on the typed cells.
//  3. Write renders. Text and Markdown are for people: one unit per column, chosen from its values, and printable
//     names. CSV and JSON are for programs: times in whole nanoseconds, a schema name, and fields that are only
//     ever added.
package table
