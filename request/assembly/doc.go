// Package assembly builds the tables of package request from the spans of a dump: which spans are requests,
// threads, and stages, what stages mean, on which host and rank they ran, how the parts of one request on
// different servers belong together, and how long the user waited for what.
//
// An [Assembly] keeps the spans until it is decided how the clocks of hosts relate: when times move, it
// rebuilds the requests. Then [Assembly.Release] releases the spans, and the tables remain.
//
// This is one long package on purpose: its steps, one or two files each, fill one set of tables in an order
// that matters, and revise parts of it if spans are missing.
//
// Anything that no rule recognizes becomes a generic row; nothing is dropped. The producers' conventions,
// by version, are in sglang.go, gateway.go, and vllm.go: the names of spans, attributes, and events are
// there and in attrs.go, and nowhere else.
//
// # What is odd
//
//   - SGLang, since 2025-09 (#9962, layout v1a): the root is "Req 7ca07386",
//     stages are side by side below threads, and the bootstrap room is a number
//     or the word None.
//   - SGLang, since 2025-10 (#10804, v1b): a span "Bootstrap Room 0x5c" encloses
//     the roots of one room, "prefill Req", "decode Req", "router Req", or "
//     Req" (the space is real). In v1a and v1b, prefill_forward includes the
//     wait before it, so the queue time is unknown.
//   - SGLang, since 2026-02 (#17862, v2): an attribute module, trace levels,
//     decode_loop inside decode_forward, stages for waiting. The attributes
//     gen_ai.latency.e2e and those of decoding are never there, because SGLang
//     builds them too early; E2E comes from spans.
//   - SGLang, since 2026-04 (#22186): dispatch and dc_dispatch are called
//     api_server_dispatch and dpc_dispatch.
//   - Prefill and decode servers give one request different rids. A gateway in
//     front gives both the same trace; without a gateway, the bootstrap room
//     joins them.
//   - SGLang cuts a rid at its last underscore, so user_42_turn_1 becomes 1.
//     Traces tell equal rids apart.
//   - Pids are equal on several hosts, because containers number them. The host
//     ID is part of every identity.
//   - With SGLANG_TRACE_ASYNC=1 (trace_async.py), one process of a server exports the spans of
//     all threads, except the roots. A stage whose thread's span is missing may be from any of them.
//   - Times of stages are on a grid of 256 ns (seconds in a float64): a stage
//     may begin before what encloses it, and many last 0 ns. Timelines clip less
//     than a microsecond of that and show the true times beside it.
//   - The scheduler of a slow rank finishes its part after the request itself
//     has ended. This is no error, and does not count toward E2E.
//   - If a client disconnects while its request is queued, the garbage collector
//     closes the request with the reason "have unclosed span, auto closed"; it
//     counts as aborted. If a request fails before it is queued, its root never
//     ends and is never exported: its threads are orphans.
//   - With several tokenizer workers (#38210), the schedulers don't trace:
//     requests have no threads.
//   - The gateway (smg) writes status_code and latency as text. Its span lasts
//     until the body of the answer has been sent. A request that the gateway
//     itself rejects has no server.
//   - vLLM writes one span per request, llm_request; all its times are
//     attributes, in seconds. They become the stages vllm_queue, vllm_prefill and
//     vllm_decode: prefill ends at the first token, the others are next to it.
//   - vLLM with #44402 (open in 2026-06) writes these stages as spans, from another
//     process than the request's. A request that is preempted has several of each.
//   - finish_reasons is a list in JSON, stored as text; other producers write a
//     real list.
package assembly
