// Package page writes a report as one HTML file that needs no network and no other file, opens from disk, and prints.
//
// It works in three layers.
//
//  1. A [Page] is data: sections of figures, each with its caption, where its numbers are defined, and the
//     command line that prints them. What a figure shows is a [chart.Body]: one of package chart, [Table],
//     [Findings], or [RequestList].
//  2. Builders make sections from the results of the other packages of analyze: [Summary], [Latencies],
//     [Timeline], [Tail], [Waterfalls], [Stages], [Stragglers], [GPUs], [Kernels], [Collectives], [Stacks].
//     [Overview] makes a page of them all.
//  3. [Write] draws: Go writes the tables and the SVG, so that the page is readable without scripts. The script
//     adds interaction: values under the pointer, sorting, filters, the theme.
//
// # Text from traces
//
// The name of a kernel or of a request can hold anything, even "</script>". It reaches the page through
// html/template, through the SVG writer of package chart, which escapes it, or as JSON in a script element that is
// data; in the browser, only as textContent. Should one of these fail, the page's Content-Security-Policy allows
// exactly one script and one style sheet, by their hashes, and nothing from anywhere else. The policy also forbids
// style attributes: colors and sizes are classes, or attributes of SVG.
package page
