// Package spans writes a run of the simulator as the OTLP dump that SGLang's
// tracing and an OpenTelemetry Collector would have left behind: each host on its
// own clock, in the layout of package otlp.
package spans
