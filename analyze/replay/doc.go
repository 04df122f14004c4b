// Package replay replays a recorded run: the same requests arrive, are queued, batched, and computed by the same
// servers, with a step time model fitted to the steps of each server. [Read] reconstructs a run from its spans,
// [Run.FitSteps] fits the model, and [Run.Play] replays the run with the changes of a [Plan].
//
// A server is a loop, like SGLang's scheduler: at the end of each step, a boundary, it takes in what has arrived,
// forms the next batch, prefill before decode, and computes it. Waiting is simulated, not scaled: waiting for the
// boundary, for room in the batch, for KV cache, and for the other half of a request. What cannot be predicted stays
// as recorded: lengths, the way to the scheduler, the time of a transfer, and the way back to the user.
//
// Replayed without a change, a run must reproduce the recording. Package whatif checks that first, and uses no replay
// that does not fit.
package replay
