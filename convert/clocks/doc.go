// Package clocks puts the clocks of all hosts on one: it collects what is known about
// each pair (given, recorded, matched by collectives or launches, bounded by requests),
// solves for offset and drift, and says which of these it was. It never guesses: a clock
// about which nothing is known stays as it was recorded, and is reported as assumed.
// The mathematics is in internal/align.
package clocks
