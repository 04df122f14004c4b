// Package perfetto writes a [trace.Trace] as a native Perfetto trace: the
// protobuf that ui.perfetto.dev and trace_processor read without loss, with
// nested tracks, flows, typed arguments and wall-clock time.
//
// It does not read, compress or repair: the model already nests
// ([trace.Validate]), and the caller puts a compressor behind the writer.
//
// How the pieces work together:
//
//  1. One packet opens the only packet sequence: it clears the interning state,
//     declares the clocks and makes the incremental clock the default
//     (writer.go). Attributes, the declaration of arguments that are fields
//     (schema.go), and one descriptor per track follow (track.go), then the
//     names, categories and subjects of all events (define.go).
//  2. Time is cut into windows of a few thousand events. For each window every
//     track appends its begins, ends and points in the order of its own nesting
//     (stream.go). Memory is a window for each core, not the trace.
//  3. Workers on all cores encode windows (pipeline.go, encoder.go): arguments
//     become debug annotations (args.go, values.go) or, where most events have
//     them, fields of one message (typed.go), and arrows become pairs of flow ids
//     (flow.go). One stable sort by time makes the order of the tracks a global
//     one (internal/order).
//  4. Names and values of arguments are interned on first use (intern.go,
//     values.go), and only reading the arguments tells where that is. So a worker
//     leaves a gap for a packet with a new one; the goroutine that writes the
//     windows, in order, gives the id and fills the gap (pipeline.go). What is
//     written is what one encoder alone would write.
//
// The format is described in perfetto/protos/perfetto/trace/ of
// https://github.com/google/perfetto; statements about how trace_processor
// treats it were checked against v58.2.
package perfetto
