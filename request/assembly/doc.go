// Package assembly makes the tables of package request of the spans of a dump: which
// spans are requests, threads and stages and what stages mean, on which host and rank
// they ran, how the parts of one request that different servers handled belong
// together, and how long the user waited for what.
//
// An [Assembly] keeps the spans until it is decided how the clocks of hosts relate:
// when times move, requests are put together anew. Then [Assembly.Release] gives the
// spans up, and the tables remain.
//
// Everything that no rule recognises becomes a generic row; nothing is dropped. What
// producers do, by version, is in sglang.go, gateway.go and vllm.go: names of spans,
// attributes and events are written there and in attrs.go, and nowhere else.
//
// # What is odd
//
//   - SGLang, since 2025-09 (#9962, layout v1a): the root is "Req 7ca07386",
//     stages lie side by side below threads, and the bootstrap room is a number
//     or the word None.
//   - SGLang, since 2025-10 (#10804, v1b): a span "Bootstrap Room 0x5c" encloses
//     the roots of one room, "prefill Req", "decode Req", "router Req" or " Req"
//     (the blank is real). In both, prefill_forward includes the wait before it,
//     so that the queue is unknown.
//   - SGLang, since 2026-02 (#17862, v2): attribute module, trace levels,
//     decode_loop inside of decode_forward, stages for waiting. The attributes
//     gen_ai.latency.e2e and those of decoding are never there, since they are
//     built too early; E2E is that of spans.
//   - SGLang, since 2026-04 (#22186): dispatch and dc_dispatch are called
//     api_server_dispatch and dpc_dispatch.
//   - Prefill and decode servers give one request different rids. A gateway in
//     front gives them one trace; without one the bootstrap room joins them.
//   - A rid is cut at its last underscore, so that user_42_turn_1 becomes 1:
//     equal rids are told apart by their trace.
//   - Pids are equal on several hosts, since they are those of containers. The
//     host id is part of every identity.
//   - Times of stages lie on a grid of 256 ns (seconds in a float64): a stage
//     may begin before what encloses it, and many last 0 ns. Less than a
//     microsecond of that is cut on timelines, with the true times beside it.
//   - The scheduler of a slow rank ends its share after the request itself has
//     ended. That is no error, and not added to E2E.
//   - A request whose client is gone while it is queued is closed by the garbage
//     collector, with the reason "have unclosed span, auto closed": it counts as
//     aborted. One that fails before it is queued never ends its root, which is
//     never exported: its threads are an orphan.
//   - With several tokenizer workers (#38210) the schedulers do not trace:
//     requests have no threads.
//   - The gateway (smg) writes status_code and latency as text. Its span lasts
//     until the body of the answer has ended. What it rejects by itself is a
//     request without a server.
//   - vLLM writes one span for a request, llm_request; all its times are
//     attributes, in seconds.
//   - finish_reasons is a list in JSON as text; other producers write a real
//     list.
package assembly
