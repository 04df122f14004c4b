// Package otlpjson reads OpenTelemetry trace dumps: what a Collector's file
// exporter writes (JSON lines, length-framed zstd, length-framed protobuf), and
// JSON from anything else that follows OTLP's protobuf-JSON mapping, as an
// array, pretty-printed or concatenated.
//
// It says what the files say and holds no opinion on the producer: a [Dump] is
// a flat table of spans with their events, links, attributes and origin.
// Package request gives them meaning.
//
// How an input is read:
//
//  1. A cutter takes the decompressed stream in blocks and cuts them where one
//     document ends and the next begins on a new line, or at frames.
//  2. Parsers on all cores turn the pieces into batches of records. A document
//     that is longer than a few blocks is streamed through one parser, so that
//     memory never depends on the length of a line.
//  3. A collector appends the batches to the Dump in file order.
//
// A parser that meets damage says so with file and line, searches the next
// place where a document, a resource, a scope or a span begins, and goes on from
// there; see resync.go. What is lost is counted by these diagnostics:
//
//	otlp-truncated     a document or frame ends too early
//	otlp-syntax        bytes between two records are skipped
//	otlp-invalid-span  a span is left out: a time or id is missing, or none
//	otlp-lost-value    an event without a time, a value that is nested too deep
//	otlp-frame         bytes between two frames are skipped, or a frame is damaged
//	otlp-protobuf      part of a message is damaged
//
// and what is merely odd by these:
//
//	otlp-odd-value     an attribute is kept as text, as it is not of its type
//	otlp-unknown-key   a member that OTLP does not have is skipped
package otlpjson
