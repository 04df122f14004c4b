// Package jaegerjson reads traces as Jaeger's query API and its UI ("Download JSON") give
// them: {"data":[{"traceID":..,"spans":[..],"processes":{..}}]}, or the traces alone.
//
// # What is odd
//
//   - Times are whole microseconds: what OTLP has below that is lost.
//   - Jaeger makes tags of what OTLP has fields for: span.kind, otel.status_code,
//     otel.status_description, otel.scope.name (otel.library.name before 2023) and
//     w3c.tracestate. The name of an event is a field "event" of a log. They are read as what
//     they were.
//   - The parent is a reference CHILD_OF of the same trace; all other references are links.
//   - IDs may lack their zeros in front.
//   - Processes stand behind the spans of their trace, which is held until then.
package jaegerjson
