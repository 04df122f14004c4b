// Package critical computes what requests waited for: the critical path from the arrival of a request to its end, across
// requests, ranks, and hosts. Each ns is spent waiting for one thing: a queue behind the prefill of a request with a
// known ID, a transfer to a server, or a rank that ends its steps last. The pieces of a request add up to its E2E.
//
// [PathOf] returns the path of one request, [SumSlow] what the slow requests waited for together.
package critical
