// Package finders is the list of everything that sgtrace looks for without being asked.
//
// A [Finder] is a row of [All]: what it looks for, what it needs, how much that matters,
// and a function that looks. The function asks another package of analyze; the rows say in
// which order findings that say the same take precedence. The summary in all its formats,
// the page, 'sgtrace help metrics', and the test of docs/METRICS.md follow from the list,
// so that a new finder is one row.
//
// [Measure] measures everything once; all finders share it.
package finders
