// Package perfetto writes a [trace.Trace] as a native Perfetto trace: the protobuf that ui.perfetto.dev and
// trace_processor read without loss, with nested tracks, flows, typed arguments, and wall-clock time.
//
// It does not read, compress or repair: the slices of the model already nest ([trace.Validate]), and the caller
// adds a compressor after the writer.
//
// How the pieces work together:
//
//  1. One packet opens the only packet sequence: it clears the interning state,
//     declares the clocks, and makes the incremental clock the default
//     (writer.go). Then come attributes, the declaration of arguments that are fields
//     (schema.go), one descriptor per track (track.go), and the
//     names, categories, and subjects of all events (define.go).
//  2. Time is cut into windows of a few thousand events. For each window, every
//     track appends its begins, ends, and points in the order of its own nesting
//     (stream.go). Memory is one window per core, not the whole trace.
//  3. Workers on all cores encode windows (pipeline.go, encoder.go): arguments
//     become debug annotations (args.go, values.go) or, if most events have
//     them, fields of one message (typed.go), and arrows become pairs of flow ids
//     (flow.go). One stable sort by time merges the tracks into a global
//     order (internal/order).
//  4. Names and values of arguments are interned on first use (intern.go,
//     values.go), and only reading the arguments shows where that is. So a worker
//     leaves a gap for a packet with a new one; the goroutine that writes the
//     windows, in order, assigns the id and fills the gap (pipeline.go). The output is
//     the same as that of a single encoder.
//
// The format is described in perfetto/protos/perfetto/trace/ of https://github.com/google/perfetto; statements
// about trace_processor were tested with v58.2.
package perfetto
