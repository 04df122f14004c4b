// Package table holds the result of a report as typed cells, and renders it as text,
// Markdown, CSV or JSON.
//
//  1. A report describes its columns (name, unit, doc) once, and how a row's cell is
//     computed. Cells are computed when somebody asks for them, so that a table of a
//     million rows costs nothing until it is written.
//  2. Sort, Limit and Redact work on the typed cells.
//  3. Write renders. Text and Markdown are for people: one unit per column, chosen from
//     its values; names from files are made printable first. CSV and JSON are for
//     programs: times in whole nanoseconds, a schema name, and only ever more fields.
package table
