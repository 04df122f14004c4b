// Package page writes a report that is looked at: one HTML file that needs no
// network and no other file, opens from disk, and prints.
//
// It works in three layers.
//
//  1. A [Page] is data: sections of figures, each with its caption, where its numbers
//     are defined, and the command line that prints them. What a figure shows is a
//     [chart.Body]: one of package chart, [Table], [Findings], or [RequestList].
//  2. Builders make sections of what the other packages of analyze found: [Summary], [Latencies],
//     [Timeline], [Tail], [Waterfalls], [Stages], [Stragglers], [GPUs], [Kernels], [Collectives], [Stacks]. [Overview] makes a
//     page of them all.
//  3. [Write] draws: tables and SVG come from Go, so that the page can be read where
//     scripts do not run. The script adds what needs a hand: values under the pointer,
//     sorting, filters, the theme.
//
// # Text from traces
//
// The name of a kernel or of a request can hold anything, "</script>" too. It reaches
// the page through html/template, through the one function of this package that writes
// SVG, or as JSON in a script element that is data; and in the browser only as
// textContent. Should one of them fail, the page's Content-Security-Policy allows
// exactly one script and one style sheet, by their hashes, and nothing from anywhere
// else. That forbids style attributes: colors and sizes are classes, or attributes of
// SVG.
package page
