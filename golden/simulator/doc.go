// Package simulator plays an incident of LLM serving in virtual time.
//
// A [Config] describes the deployment, the workload and what goes wrong. [Play]
// plays it: requests arrive at a gateway, are tokenized, routed to a DP rank,
// queued, batched and computed by engines whose TP ranks run in lockstep; see
// engine.go. The result is a [Run].
//
// A Run knows no file format. It holds the steps of every engine with the times of
// every rank, and for each request the steps it took part in. The stages of a
// request are derived from these on demand, by [Run.Threads], so that a hundred
// thousand requests fit into memory. What is inside of a step, it does not know.
// [Run.Truth] computes, from the Run and not from any file, what a reader of files
// about it ought to find.
//
// Times are true time: nanoseconds of the Unix epoch on one perfect clock. Each
// [Host] has a [Clock], which whoever writes a file of that host applies.
//
// What is modeled is SGLang with --disable-overlap-schedule, without prefix cache,
// speculative decoding, priorities and mooncake's own spans.
//
// Other simulators share its virtual time (agenda.go), and all writers how files, random
// identifiers, and text in JSON are written (writing.go).
package simulator
