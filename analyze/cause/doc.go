// Package cause divides the time of each request by what it was spent on. Every nanosecond of a request has exactly one [Cause]:
// a queue, its own prefill, a transfer, waiting for a slow rank, ..., or unaccounted; the causes of a request add up to its E2E.
//
// An [Attribution] has the causes of one request, for its E2E, its TTFT, and its gaps between tokens. From all of them follow
// the usual times, what delays the slow requests (package tail), and what a slow rank costs in request time ([Costs]).
package cause
