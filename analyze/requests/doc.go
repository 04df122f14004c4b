// Package requests reports how long stages, requests and single requests took, and how
// many failed: the tables of stages and latencies, the list of requests, the waterfall
// of one request. The requests themselves are in package request.
package requests
