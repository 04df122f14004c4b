// Package chrometrace reads and writes Chrome JSON ("Trace Event Format"), which the
// PyTorch profiler (libkineto) and many other tools write, and which chrome://tracing,
// Perfetto and scripts read.
//
// [Read] turns a trace of any size, dialect and state of repair into a
// [profile.Profile]:
//
//  1. Package parse reads the input on all cores, and passes on its content in
//     batches, in the order of the file.
//  2. A collector takes the batches: it numbers rows, and joins slices that
//     begin and end in different pieces (collect.go, finish.go).
//  3. Whatever depends on the whole file is settled at the end: the base of its times,
//     names and numbers of rows, ranks (finish.go, header.go, own.go).
//
// Repairs are notices, losses are data losses, each with a count and the first place.
//
// # Writing
//
// [Write] writes a [trace.Trace], in the files write*.go, which share no code with those
// that read. The format can express less than the model. There are no nested tracks, so the tree
// becomes processes and threads (write_layout.go); an event has no wall-clock time, so
// times count from a base in the header; there is no place for the color of a
// subject or the description of a track. The native format keeps all of that. The names
// of a rank's rows carry the true numbers next to the invented ones, so that
// Read restores the rank (write_layout.go).
//
// Three things make importers lose or distort data, and are avoided here:
//
//   - Perfetto drops or moves slices that overlap in part. Those of a
//     finished trace nest.
//   - An escaped surrogate pair (\ud83d\ude00) aborts Perfetto's import, so
//     text is raw UTF-8.
//   - Times are read into a float64, which at the scale of the epoch has a step
//     of 250 ns. Relative to the base, three decimals of a microsecond are exact
//     for a hundred days.
//
// The format is described in "Trace Event Format" (Chromium); statements about
// Perfetto were tested with trace_processor v58.2.
//
// # What is odd
//
//   - Up to PyTorch 2.3, times are whole microseconds since 1970. Since 2.4 (May
//     2024) they have three decimals and count from baseTimeNanoseconds, which
//     came after the events until March 2025, and was missing for some weeks of
//     2024. Values of 1e14 or more are taken as times since 1970.
//   - The base changes every quarter of a year, and each process sets it once:
//     two ranks of one run may have different ones. All times are base plus
//     offset, added as integers; a float64 has steps of 250 ns there.
//   - displayTimeUnit says ms or ns, and changes nothing about the times.
//   - Time 0.000 means that the clock failed. Such events are left out and
//     counted.
//   - Until July 2026, names are not escaped: compiled functions have quotes,
//     backslashes, and control characters in theirs (pytorch#146900, #98432). A
//     quote ends a string if what follows fits.
//   - Other invalid JSON: bare inf and N/A (2021), keys without a value and
//     commas before a closing brace (until April 2026), lists that are not
//     closed (November 2024), log lines with quotes.
//   - JAX and TensorFlow end the list of events with an empty object.
//   - Files are cut off where a process was killed: SGLang writes its .gz in
//     place. Before April 2026, ranks of TensorRT-LLM wrote into one file, each
//     over the others.
//   - Events are in no order. Metadata comes after them, or is missing.
//   - Arrows from launches to kernels (ac2g) have ends without beginnings, and
//     IDs that all ranks share. We use the correlation ID instead, within one
//     file.
//   - One launch of a CUDA graph has hundreds of kernels, which is all of
//     decoding. They have no collective arguments: names tell which ones
//     communicate.
//   - "External id" names the operator only since PyTorch 2.4; from 1.13 to 2.3
//     it repeats the correlation. See kineto.go.
//   - "Process Group Ranks" is text, and cut off with "..." after 30 ranks.
//     "Comms Id" needs 64 bits. "Seq" exists only since March 2026.
//   - Before 2022, categories have other names (Kernel, Memcpy, Runtime,
//     Operator), a stream is called "stream 7" instead of 7, and the header has
//     computeProperties.
//   - ROCm's calls are in the category cuda_runtime, too. XPU and MTIA put calls
//     on pids of devices, or collectives on the pid of the process.
//   - In on-demand traces (dynolog), distributedInfo comes after the events, and
//     its ranks are text.
//   - Pids say little: every container may have pid 251, and every rank's GPU is
//     device 0.
//   - SGLang's profile_merger.py turns pids into "[TP00-DP01] 1251", and keeps
//     the header of the first rank and the IDs of arrows. TraceLens moves pids
//     apart and calls processes "RANK 3 - GPU". We separate the ranks again.
//   - SGLang writes a file without events for a rank whose profiler failed.
//   - Ascend writes an array, and times as text. What its devices ran has no category: the
//     name of the process tells. JAX does so, too. See devices.go. Calls are on a
//     process of their own, CANN, and only arrows join them to tasks. See cann.go. A collective
//     is one event on a row of its group, next to the waits and copies that it consists of.
//   - Python functions on pid 0, thread 0 share their row with stream 0 of
//     device 0 unless categories are considered.
package chrometrace
