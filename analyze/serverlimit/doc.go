// Package serverlimit finds the limit of a server that keeps requests waiting, since when it does, and what that
// costs. Limits are the most requests that may run at once, a full KV cache, the time to compute prompts, and the
// bandwidth for KV transfers. docs/METRICS.md defines the numbers.
//
// Gateways and the tokenizers of servers may keep requests waiting, too (front.go). A server cannot see what happens
// before its own span begins, but the gateway's span shows it, with the time at which the gateway sent the request:
// time before that is the gateway's, and time after it is that of the tokenizer, which was too busy to begin.
package serverlimit
