// Package replay plays a recorded run again: the same requests arrive, are queued, batched, and
// computed by the same servers, with a step time model that is fitted to the steps of each
// server. [Read] takes a run apart, [Run.FitSteps] fits the model, and [Run.Play] plays the run, with whatever a
// [Plan] changes.
//
// A server is a loop, as SGLang's scheduler is one: at the end of each step, a boundary, it
// takes in what has come, forms the next batch, prefill before decode, and computes it. What
// is replayed, and not scaled, is waiting: for the boundary, for room in the batch, for KV
// cache, for the other half of a request. What nobody can know is kept as recorded: lengths,
// the way to the scheduler, the time of a transfer, the way back to the user.
//
// Played without a change, a run has to come out as it was recorded. Package whatif checks that first, and
// asks no replay that does not fit.
package replay
