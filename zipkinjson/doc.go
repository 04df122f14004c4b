// Package zipkinjson reads spans in Zipkin's JSON, version 2: a list of spans, a list of
// traces that are lists of spans, or several of these one after another.
//
// # What is odd
//
//   - Times are whole microseconds: what OTLP has below that is lost.
//   - All tags are text, numbers and truth values as well. Those with a fraction are read as
//     numbers again; a whole number may be an ID, and stays text.
//   - A span has the tags of its process as well as its own. Those that OpenTelemetry has
//     for resources (service., telemetry., host., process., ...) are read as the process's.
//   - Exporters make tags of what OTLP has fields for: otel.status_code, error,
//     otel.status_description, otel.scope.name (otel.library.name before 2023), and of links
//     otlp.link.0 and so on. They are read as what they were.
//   - Events are annotations: the name alone, or NAME|{attributes}|dropped.
//   - Zipkin's server writes names of spans and services in lower case.
package zipkinjson
