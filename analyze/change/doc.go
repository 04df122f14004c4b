// Package change finds the moments at which load or latency changed. Package internal/changepoint has the
// statistics, and package work measures what work usually takes; this one decides which series are searched,
// which shifts belong to one moment, and which of these comes first in the chain of cause and effect.
//
// It is large because all series come from one observation of the requests, and a shift of one is judged by
// the others: longer steps are not a change of pace if batches grew.
package change
