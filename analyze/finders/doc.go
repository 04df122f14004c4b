// Package finders is the list of everything that sgtrace looks for without being asked.
//
// A [Finder] is a row of [All]: what it looks for, what input it needs, how much its findings matter, and a function that looks,
// which asks another package of analyze. If several findings say the same, the first row takes precedence. The summary in all its
// formats, the page, 'sgtrace help metrics', and the test of docs/METRICS.md follow from the list, so a new finder is one row.
//
// [Measure] measures everything once; all finders share it. Which finding explains which others is in package consequence,
// and here where measurements tell.
package finders
