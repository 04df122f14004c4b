// Package request rebuilds serving requests from the spans of a dump: which
// spans are requests, threads and stages, on which host and rank they ran, how
// the parts of one request that different servers handled belong together, and
// how long the user waited for what.
//
// The words:
//
//   - A [Part] is what one server did for a request: the tree under one of
//     SGLang's request spans ("prefill Req 7ca07386"). A unified server has one
//     part per request; with prefill/decode disaggregation there are a prefill
//     and a decode part, and a sender part per prefill rank for Mooncake.
//   - A [Thread] is the share of a part that one thread of one process had; its
//     [Proc] says which host, role and rank that was.
//   - A stage is a span under a thread: prefill_forward, decode_loop, ...
//   - A [Request] joins the parts, and the gateway's span, of one request.
//
// Everything that no rule recognises stays a generic span; nothing is dropped.
// What producers do, by version, is in sglang.go, gateway.go and vllm.go.
package request
