// Package serverlog reads the logs of LLM servers: SGLang's, vLLM's, and TensorRT-LLM's, in any collector's wrapping. A
// batch line becomes samples of [series.Set], one for each value; events become instants; and lines about a single request
// become rows of [spantable.RequestRecords]. A line is never matched as a whole: batch lines are split at commas into pairs
// of a key and a value, because each release has other keys in another order. Logs of the router in front of the servers
// are a format of their own, in package router.
package serverlog
