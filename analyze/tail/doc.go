// Package tail says why the slow requests are slow: how those beyond a percentile
// differ, cause by cause (package cause), from those around the median; which stages or
// transfers delayed whom; and which side of prefill/decode disaggregation is the limit.
//
// What slow requests have in common (common.go) is the model, a header, the rank, the pair of hosts,
// long prompts, or whatever else a dump tells of its requests. A [Trait] is a value of an attribute that
// some requests have. Requests that have it are compared with their neighbors in time that do not, so
// that load which comes and goes does not matter, and all traits are paid for at once.
package tail
