// Package cluster plays many SGLang servers behind a gateway in virtual time, with faults from a table: restarts and
// deploys, hangs and deaths, changes of speed and of load.
//
// A [Config] describes pools of servers, each of one model, and their load; its faults are rows of one table, in fault.go.
// [Play] plays it step by step; [Write] writes the dump. While package simulator looks into the ranks of one deployment,
// this one looks at the lives of servers: all it knows about a step is its end.
//
// The same seed has the same arrivals, lengths, and noise, whatever the faults: each request and each server draws from a
// stream of its own. extra compares a run with the one without its faults, request by request. [Scenarios] are runs with
// their truth: what there is to find, where, since when, and what it costs.
//
// It models these features of SGLang: batches of prefill before decode, chunked prefill, TP ranks that end a step
// microseconds apart, prefill and decode servers with KV transfers, prefix caches, speculative decoding, aborts, DP ranks
// with a KV cache of their own, and requests that are retracted from a full one.
//
// [Evidence] is the files of an untraced run: logs in the layouts of several releases and collectors, records of requests,
// metrics of servers and GPUs as Prometheus keeps them, and kernel logs. [Evident] are the scenarios that must be found
// from these.
package cluster
