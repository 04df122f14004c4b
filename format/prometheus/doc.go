// Package prometheus reads metrics as Prometheus has them: the answer of its API to query_range, the
// text that /metrics prints, and OpenMetrics, as promtool dumps it.
//
// # What is odd
//
//   - Times of the API and of OpenMetrics are seconds with a fraction, those of the older text
//     milliseconds. Text that was saved from /metrics has none: then its values are as of when the
//     file was written.
//   - SGLang's names begin with "sglang:", and with "sglang_" from /v1/loads and from gateways. In
//     2024-11 they were others, with a label "name" for the model, and the hit rate was in percent.
//   - Shares are 0 to 1 in SGLang's and vLLM's metrics.
//   - DCGM_FI_DEV_XID_ERRORS keeps the last code until the driver is loaded again: its change is
//     the event, and a code that was there at first says nothing.
//   - Values are text in the API: "NaN", "+Inf".
package prometheus
