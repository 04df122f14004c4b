// Package routerlog reads logs of SGLang's router: sgl-router, which became sgl-model-gateway (smg). They say
// when it took servers out and put them back, and which requests failed.
//
// # What is odd
//
//   - Stamps have no zone and are UTC, beside the local ones of SGLang's servers.
//   - A log is text, with what belongs to a request in braces in front of the name of the module, or JSON
//     (--log-json), where that is in "span".
//   - A failed health check is written only while the router still holds the server for healthy. Those that
//     follow are not, until "is now healthy".
//   - A circuit breaker that opens does not say whose it is.
//   - The name of the module was sglang_router_rs until 2025-11, then sgl_model_gateway, then smg.
package routerlog
