// Package otlp writes OTLP JSON dumps as SGLang's and smg's tracing and an OpenTelemetry
// Collector leave them behind: spans in the order in which they ended, in batches of a
// process, with the attributes and the grid of times that these producers have.
//
// span.go has the JSON of a span, exporter.go its way to the file; sglang.go and gateway.go
// say what the producers write. [Write] writes a run of package simulator that way, each host
// on its own clock: run.go its requests, scribe.go the spans of one server. Package cluster
// writes its own runs.
package otlp
