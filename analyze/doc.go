// Package analyze is the guide to the reports, which are the packages below it. It has
// no code of its own.
//
// A report answers one question about tables of the model: a request.Set, a
// profile.Set, or an inventory.Inventory. It does not know who wrote a capture, opens
// no file and parses no flag. Each package imports only those above it here:
//
//	words, distribution, table, place, finding, document    what all reports stand on
//	curves, load, straggler, cause, slo, walk               what several of them do
//	requests      how long stages, requests and one request took; what failed; which spans are lost
//	change        since when load or latency is different
//	tail          why the slow requests are slow, and what they have in common
//	limit         what keeps requests waiting: full servers, gateways, and tokenizers
//	lifecycle     when servers start, are restarted, hang, and die
//	kernel        what kernels, launches, calls, copies and ranges took, by name
//	gpu           what devices did and what they waited for
//	host          the stacks of threads, what the names in them mean, and time by stack (asks gpu)
//	gaps          what the host did while devices ran nothing (asks gpu, host)
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
//	page          the same, as a page to look at
//	fleet         what they found in run after run, over weeks
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
