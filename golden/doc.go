// Package golden writes inputs whose truth is known into a folder: an incident is
// played in virtual time, and what happened is written down twice, once as the
// producers would have traced it and once as it was, in truth.json.
//
// The pieces, in the order in which data passes through them:
//
//  1. Package simulator plays a deployment and its workload. The result, a run,
//     knows no file format.
//  2. Package otlp writes the OTLP dump that SGLang's tracing and an OpenTelemetry
//     Collector would have left behind.
//  3. Package torch makes up the inside of steps, layers, kernels and collectives,
//     and writes the traces of PyTorch's profiler.
//  4. Package nsys writes the same events as Nsight Systems would have exported
//     them, through SQLite itself.
//  5. [WriteDir] writes all of them, and the truth; [Weeks] does that day after day.
//
// Each writer is given a run and returns what its files hold. None of them reads a
// file, and no reader is used: what they write must not agree with our readers by
// construction.
//
// All times are true time, in nanoseconds of the Unix epoch on one perfect clock.
// Only writers apply the clock of a host. The same configuration gives the same
// bytes, always.
//
// The folder script has the golden cases of the program, which are unrelated.
package golden
