// Package analyze computes the reports: what every stage, rank and request of a
// [request.Set] took, which of them stands out, and what is in the files at all;
// and what the kernels, calls and annotations of a [profile.Set] took.
//
// It knows requests and profiles, and nothing of how they were read; it opens no file
// and parses no flag. How the pieces work together:
//
//  1. A report function ([GroupStages], [MeasureLatencies], [Requests],
//     [InspectAll], [NewWaterfall]; [SumKernels], [SumCalls], [SumCopies], [SumRanges],
//     [SumRangeKernels], [SumLaunches]) makes one pass over the set and returns
//     plain structs.
//  2. A table of fields (name, unit, doc, where the value comes from) turns
//     them into a [Report]: typed cells that are computed when they are asked
//     for, so that a report of a million rows costs nothing until it is written.
//  3. [Report.Write] renders it. Text and Markdown are for people: one unit per
//     column, chosen from its values. CSV and JSON are for programs: times in
//     whole nanoseconds, a schema name, and only ever more fields.
//
// Files are called after the question that they answer; one with _report or _text behind
// its name makes the tables or the lines of it:
//
//	stages, latency, requests, waterfall   how long stages, requests and one request took
//	tail, cause                            why the slow requests are slow
//	timeline, changepoint                  load and latencies over time, and since when
//	rank, straggler, collective            who is late, at steps and at collectives, and why
//	sum, gpu                               what calls, kernels and GPUs did
//	finding, overview                      what stands out in all of these, on one screen
//	diff                                   what changed between two captures
//	inspect                                what is in files
//
// All percentiles are nearest rank: the value at rank ceil(p*n) of the sorted
// values, one that really occurred. Nothing is interpolated, so that the p99 of
// 37 values is the largest of them, and a footnote says so. What every number
// means, and when it is unknown, is in docs/METRICS.md.
package analyze
