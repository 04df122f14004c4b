// Package limit tells which limit of a server keeps requests waiting, since when, and what
// that costs: the most requests that may run at once, a KV cache that is full, prompts to
// compute, KV caches to transfer. docs/METRICS.md defines the numbers.
package limit
