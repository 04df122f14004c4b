// Package critical says what requests waited for: the chain from the arrival of a request to its
// end, across requests, ranks, and hosts. Every ns of it is waited for one thing: a queue behind
// the prefill of a request, which has a name, a transfer to a server, a rank that ends its steps
// last. The pieces of a request add up to its E2E.
//
// [PathOf] is the chain of one request, [SumSlow] what the slow requests waited for together.
package critical
