// Package change finds the moments at which load or latency changed. The statistics are in internal/changepoint; this
// package decides what series are searched, which shifts happened at one moment, and
// which of them comes first in the chain of cause and effect.
package change
