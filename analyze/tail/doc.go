// Package tail says why the slow requests are slow: how those beyond a percentile
// differ, cause by cause (package cause), from those around the median; which stages or
// transfers delayed whom; and which side of prefill/decode disaggregation is the limit.
package tail
