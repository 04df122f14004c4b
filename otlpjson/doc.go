// Package otlpjson reads OpenTelemetry trace dumps: the output of a Collector's file exporter (JSON lines,
// length-framed zstd, length-framed protobuf), and JSON from anything else that follows OTLP's protobuf-JSON
// mapping, as an array, pretty-printed or concatenated.
//
// It reports what the files contain, whatever the producer: a [spantable.Table] is a flat table of spans with
// their events, links, attributes, and origin. Package assembly, below request, interprets them.
//
// How an input is read:
//
//  1. A cutter takes the decompressed stream in blocks, reading those of a plain file ahead
//     concurrently, and cuts them where one document ends and the next begins
//     on a new line, or at frames.
//  2. Parsers on all cores turn the pieces into batches of records. A document
//     that is longer than a few blocks is streamed through one parser, so that
//     memory never depends on the length of a line.
//  3. A collector takes the batches in file order: it numbers their traces and
//     origins, and reserves rows of the table.
//  4. Workers fill the rows, in any order.
//
// It is one long package on purpose: JSON, protobuf, and the two ways to look at pieces without parsing all of
// them share batches, the handling of damage, and a recorder, which knows the fields that a span needs, and counts
// and locates losses.
//
// A parser that meets damage reports it with file and line, searches for the next place where a document, a
// resource, a scope, or a span begins, and goes on from there; see resync.go. Losses are counted by these
// diagnostics:
//
//	otlp-truncated     a document or frame ends too early
//	otlp-syntax        bytes between two records are skipped
//	otlp-invalid-span  a span is left out: a time or id is missing or invalid
//	otlp-lost-value    an event without a time, a value that is nested too deep
//	otlp-frame         bytes between two frames are skipped, or a frame is damaged
//	otlp-protobuf      part of a message is damaged
//
// and oddities by these:
//
//	otlp-odd-value     an attribute does not match its type, and is kept as text
//	otlp-unknown-key   a member that OTLP does not have is skipped
//
// # What is odd
//
//   - The Collector's file exporter writes a message of up to 8192 spans as one line of megabytes. Other tools
//     write arrays, indented documents, or documents one after the other without a newline. We look for the
//     ends of documents, not for lines.
//   - When compressed, or as protobuf, every message of the Collector has a length of 4 bytes in front (contrib
//     v0.159). A zstd frame holds JSON or protobuf. File names don't show any of this; the first bytes do.
//   - In OTLP's JSON, 64-bit numbers are text. Some exporters write numbers; both are read, to the last bit.
//   - IDs are hexadecimal in OTLP's JSON, and base64 if a generic protobuf converter wrote them.
//   - Keys may be those of protobuf (resource_spans), of Tempo (batches), or of OTLP before 0.15
//     (instrumentationLibrarySpans).
//   - A resource or a scope may come after its spans.
//   - The Collector writes doubles without a fraction like integers.
//   - Spans come twice: an exporter resends what was not acknowledged. They are counted once.
//   - Spans are missing: the queue of an OpenTelemetry SDK holds 2048 spans and silently drops the rest, and a
//     file begins or ends in the middle of requests. Children and links of missing spans reveal it.
//   - On timelines, some fields of spans become attributes: span.kind unless it is internal, w3c.tracestate,
//     dropped_attributes_count, dropped_events_count, dropped_links_count, link_attributes, and otel.scope.name
//     where the spans of a process have several scopes.
//   - Logs and metrics may be in the same file. They are read as if they were in a file of their own, except if
//     requests are selected, or from a dataset. Profiles are skipped and counted.
//   - Between documents there may be a byte order mark, CRLF, blank lines, or blocks of zeros from a file
//     system that crashed.
package otlpjson
