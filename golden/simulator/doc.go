// Package simulator plays an incident of LLM serving in virtual time.
//
// A [Config] describes the deployment, the workload, and the faults. [Play] plays it: requests arrive at a gateway, are
// tokenized, routed to a DP rank, queued, batched, and computed by engines whose TP ranks run in lockstep; see engine.go.
// The result is a [Run].
//
// A Run knows no file format. It holds the steps of every engine with the times of every rank, and for each request the
// steps it took part in. [Run.Threads] derives the stages of a request from these on demand, so that a hundred thousand
// requests fit into memory. The inside of steps is not modeled. [Run.Truth] computes, from the Run and not from any file,
// what a reader of its files ought to find.
//
// Times are true time: nanoseconds of the Unix epoch on one perfect clock. Each [Host] has a [Clock], which the writers of
// its files apply.
//
// The model is SGLang with --disable-overlap-schedule, without prefix cache, speculative decoding, priorities, and
// mooncake's own spans.
//
// Other simulators share its virtual time (agenda.go), and all writers share functions for files, random identifiers, and
// JSON text (writing.go).
package simulator
