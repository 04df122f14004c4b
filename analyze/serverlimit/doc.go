// Package serverlimit tells which limit of a server keeps requests waiting, since when, and what
// that costs: the most requests that may run at once, a KV cache that is full, prompts to
// compute, KV caches to transfer. docs/METRICS.md defines the numbers.
//
// Gateways and the tokenizers of servers may keep requests waiting, too (front.go). No server sees
// what a request waits before its own span begins. The gateway's span shows it, and says when it sent
// the request: what comes before that is the gateway's, what comes after it is that of the tokenizer,
// which was too busy to begin.
package serverlimit
