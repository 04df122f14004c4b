// Package serverlog reads the logs of LLM servers: SGLang's, vLLM's, and TensorRT-LLM's, as
// whatever collects them wraps them. A batch line becomes samples of [series.Set], one for each
// value that it has; what happened becomes an instant; and what a line says of one request
// becomes a row of [record.Table]. A line is never matched as a whole: batch lines are cut at
// commas into pairs of a key and a value, because each release has other keys in another order.
//
// # What is odd
//
//   - Stamps of SGLang are local times of whole seconds without a zone. What collects logs may add
//     a stamp of its own with a zone (kubectl --timestamps, docker, containerd); then that one counts.
//   - Until 2024, stamps have no date. They are of the days before the file was written; a clock that goes back has passed midnight.
//   - The first batch line after a pause has a throughput near 0: it is the mean since the line before.
//   - Since 2025-05, batch lines end in "cuda graph: True"; on NPUs until 2026-01-22 this reads "cpu graph: True".
//   - "Decode batch" is followed by a period until 2025-10, by a comma since, and by "[iteration]" on request. Lines of late 2025 end in a comma.
//   - The first layout of disaggregation (2025-04) has blanks where others have commas.
//   - Under Dynamo, batch lines have no rank, and UTC instead of local time, often with colors.
//   - Progress bars write several segments, divided by carriage returns, before a stamp.
//   - Until 2026-08 at least, a scheduler runs no batch while it writes a profile: from "Stop profiling" to "Profiling done",
//     often tens of seconds. Garbage that was collected is logged behind the fact, with --gc-warning-threshold-secs.
//   - Every TP rank prints each transfer that failed; rooms tell how many there were.
//   - Tracebacks of ranks interleave, line by line.
//   - Since 2024, a watchdog prints the requests that it saw, with their token IDs; with --log-requests, lines hold whole prompts. Neither is read.
//   - vLLM's stamps have no year. vLLM prints no line while it is idle, and "EngineDeadError" when it is stopped.
//   - TensorRT-LLM's stamps begin with the month. Its prev_device_step_time belongs to the iteration before.
package serverlog
