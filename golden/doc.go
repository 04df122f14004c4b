// Package golden writes inputs with a known truth into a folder: it plays an incident in virtual time, and writes the
// events twice, once as the producers would have traced them and once as they were, in truth.json.
//
// The pieces, in the order in which data passes through them:
//
//  1. Package simulator plays a deployment and its workload. The result, a run,
//     knows no file format.
//  2. Package otlp writes the OTLP dump that SGLang's tracing and an OpenTelemetry
//     Collector would have left behind.
//  3. Package torch makes up the inside of steps: layers, kernels, and collectives.
//     It writes the traces of PyTorch's profiler.
//  4. Package nsys writes the same events as Nsight Systems would have exported
//     them, through SQLite itself.
//  5. [WriteDir] writes all of them, and the truth; [Weeks] does that day after day.
//
// [WriteUntraced] writes what an incident that package cluster plays leaves behind without any tracing.
//
// Each writer gets a run and returns the content of its files. No reader is used, so that what the writers write does not
// agree with our readers by construction.
//
// All times are true time, in nanoseconds of the Unix epoch on one perfect clock. Only writers apply the clock of a host.
// The same configuration always gives the same bytes.
//
// The folder script has the golden cases of the program, which are unrelated.
package golden
