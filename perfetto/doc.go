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
//     (writer.go). Attributes and one descriptor per track follow (track.go).
//  2. Time is cut into windows of a few thousand events. For each window every
//     track appends its begins, ends and points in the order of its own nesting
//     (stream.go), and one stable sort by time makes that a global order
//     (radix.go). Memory is a window, not the trace.
//  3. Each event becomes one packet in a reused buffer: strings are interned on
//     first use (intern.go), arguments become debug annotations (args.go),
//     arrows become pairs of flow ids (flow.go).
//  4. Full buffers go to a goroutine that writes them, so that a slow writer (a
//     compressor as a rule) and the encoder share two cores (output.go).
//
// The format is described in perfetto/protos/perfetto/trace/ of
// https://github.com/google/perfetto; statements about how trace_processor
// treats it were checked against v58.2.
package perfetto
