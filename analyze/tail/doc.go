// Package tail explains why slow requests are slow: how requests beyond a percentile differ, cause by cause (package
// cause), from those around the median; which stages or transfers delayed which requests; and which side of
// prefill/decode disaggregation is the bottleneck.
//
// common.go looks for what slow requests have in common: the model, a header, the rank, the pair of hosts, long
// prompts, or any other attribute in the dump. A [Trait] is a value of an attribute that some requests have. They are
// compared with requests without it that came at about the same time, so that varying load does not matter, and
// p-values are corrected for the number of traits.
package tail
