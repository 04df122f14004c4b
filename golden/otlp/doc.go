// Package otlp writes OTLP JSON dumps in the form left by SGLang's and smg's tracing and an OpenTelemetry Collector: spans
// in the order in which they ended, in batches of a process, with these producers' attributes and time grid.
//
// span.go has the JSON of a span, exporter.go its way to the file; sglang.go and gateway.go have what the producers write.
// [Write] writes a run of package simulator that way, each host on its own clock: run.go writes its requests, scribe.go the
// spans of one server. Package cluster writes its own runs.
package otlp
