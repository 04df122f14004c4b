// Package pftest reads Perfetto traces back in tests.
//
// It shares no code with the writer and is stricter than trace_processor: what
// that would drop, guess or repair without a word is an error here, and so is a
// packet that the writer's own rules forbid. What it accepts, it interprets as
// trace_processor v58 does: events in file order, an END closes the innermost
// open slice of its track, an arrow points from the slice that starts first.
//
// [Model] makes models that are hard to write, for tests of any writer to
// compare with what they get back.
//
// When the real trace_processor is installed, [Processor] asks that too.
package pftest
