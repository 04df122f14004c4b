// Package change finds the moments at which load or latency changed. The statistics are in internal/changepoint, and what work
// usually takes is in its folder work; this package decides what series are searched, which shifts happened at one moment, and
// which of them comes first in the chain of cause and effect.
//
// It is long, as all series are of one observation of the requests, and a shift of one is judged by the others: steps that take
// longer are no change of pace where batches grew.
package change
