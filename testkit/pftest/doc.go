// Package pftest reads Perfetto traces back in tests.
//
// [Decode] interprets what package perfetto/reader reads as trace_processor v58
// does: events in file order, an END closes the innermost open slice of its
// track, an arrow points from the slice that starts first. What that would drop
// or repair without a word is an error.
//
// [Model] makes models that are hard to write, for tests of any writer to
// compare with what they get back.
//
// When the real trace_processor is installed, [Processor] asks that too.
package pftest
