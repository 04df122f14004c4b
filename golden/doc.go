// Package golden makes inputs whose truth is known: an incident is played in
// virtual time, and what happened is written down twice, once as the producers
// would have traced it and once as it was.
//
// The pieces, in the order in which data passes through them:
//
//  1. A [Config] describes the deployment, the workload and what goes wrong.
//  2. [Simulate] plays it. Requests arrive at a gateway, are tokenized, routed
//     to a DP rank, queued, batched and computed by engines whose TP ranks run
//     in lockstep; see engine.go. The result is a [Run].
//  3. A Run knows no file format. It holds the steps of every engine with the
//     times of every rank, and for each request the steps it took part in. The
//     stages of a request are derived from these on demand, in trail.go, so a
//     hundred thousand requests fit into memory.
//  4. [WriteOTLP] writes the dump that SGLang's tracing and an
//     OpenTelemetry Collector would have left behind: each host on its own
//     clock, slices on the grid that SGLang's float seconds leave, spans in the
//     order in which they ended, in batches per process.
//  5. [WriteTorch] writes, for a part of the run, the trace that PyTorch's profiler
//     would have left on one rank. Steps lie where they were; what is in them,
//     layers, kernels and collectives, is laid out in torch_layout.go.
//  6. [WriteNsys] writes the same for a host as Nsight Systems would have exported it,
//     through SQLite itself: nsys_host.go translates the layouts of its schedulers,
//     nsys_write*.go writes the tables, whose columns are in package nsysdb.
//  7. [Run.Truth] computes, from the Run and not from any file, what a reader
//     of the files ought to find.
//
// All times inside the package are true time: nanoseconds of the Unix epoch on
// one perfect clock. Only a writer applies the clock of a host. The same Config
// gives the same bytes, always.
//
// What is modelled is SGLang with --disable-overlap-schedule, without prefix
// cache, speculative decoding, priorities and mooncake's own spans.
package golden
