// Package analyze is the guide to the reports, which are the packages below it. It has
// no code of its own.
//
// A report answers one question about tables of the model: a request.Set, a
// profile.Set, or an inventory.Inventory. It does not know who wrote a capture, opens
// no file and parses no flag. Each package imports only those above it here:
//
//	words, distribution, table, place, finding, document    what all reports stand on
//	curves, load, straggler, cause, slo, walk               what several of them do
//	crowd         makes tables of very many ranks short
//	requests      how long stages, requests and one request took; what failed
//	change        since when load or latency is different
//	tail          why the slow requests are slow
//	common        what slow requests have in common
//	limit         what a server has no more of, so that requests wait
//	lifecycle     when servers start, are restarted, hang, and die
//	missing       which spans are lost on their way to a dump
//	kernel        what kernels, launches, calls, copies and ranges took, by name
//	gpu           what devices did and what they waited for
//	host          the stacks of threads, and what the names in them mean (asks gpu)
//	gaps          what the host did while devices ran nothing (asks gpu, host)
//	stacks        where the time of threads and devices went, by stack (asks host)
//	operators     what operators and modules of PyTorch took, and TFLOP/s (asks host)
//	tokens        how many tokens steps compute, and how fast (asks gpu)
//	overtime      how busy devices are over time, and when that changed (asks gpu)
//	collective    who is late in collectives, and why (asks gpu)
//	rank          which rank has more to do or is slower
//	diff          what changed between two captures (asks requests, gpu, gaps, operators)
//	inspect       what is in files
//	finders       the list of what is looked for in all of these
//	gate          whether a script may go on: conditions on changes, and kinds of findings
//	overview      what they found, on one screen
//	fleet         what they found in run after run, over weeks
//	page          the same, as a page to look at
//
// # How a report is made
//
//  1. A function makes one pass over the tables and returns plain structs: what was
//     counted and measured. Where rows are walked, it holds 4 bytes a value (package
//     distribution).
//  2. Columns (name, unit, doc, where a cell comes from) turn the structs into a
//     table.Report, whose cells are computed when they are asked for.
//  3. What stands out becomes a finding.Finding with its evidence and cost, and a row of
//     finders.All asks for it.
//  4. Tables and findings make a document.Document, which writes itself in every format.
//     A command only parses flags.
//
// To add a report, make a package that does this, say in docs/METRICS.md what its numbers
// mean and when they are unknown, and give it its place in docs/architecture_test.go.
//
// All percentiles are nearest rank: the value at rank ceil(p*n) of the sorted values, one
// that really occurred. Nothing is interpolated, so the p99 of 37 values is the largest
// of them, and a footnote says so.
package analyze
