// Package spans writes a run of the simulator as the OTLP dump that SGLang's
// tracing and an OpenTelemetry Collector would have left behind: each host on its
// own clock, slices on the grid that SGLang's float seconds leave, spans in the
// order in which they ended, in batches per process.
//
// otlp.go has the way of a span to the file, span.go its JSON; sglang.go and
// gateway.go say what the producers write.
package spans
