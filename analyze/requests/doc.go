// Package requests reports how long stages, requests and single requests took, and how
// many failed: the tables of stages and latencies, the list of requests, the waterfall
// of one request. The requests themselves are in package request.
//
// It also tells which spans were lost on their way to a dump, as far as others show it (loss.go).
package requests
