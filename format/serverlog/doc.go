// Package serverlog reads the logs of LLM servers: SGLang's, vLLM's, and TensorRT-LLM's, as
// whatever collects them wraps them. A batch line becomes samples of [series.Set], one for each
// value that it has; what happened becomes an instant; and what a line says of one request
// becomes a row of [spantable.RequestRecords]. A line is never matched as a whole: batch lines are cut at
// commas into pairs of a key and a value, because each release has other keys in another order.
// Logs of the router in front of the servers are a format of their own, in package router.
package serverlog
