// Package clocks puts the clocks of all hosts on one. It collects the evidence about each pair of clocks
// (given by the user, recorded by the producer, matched by collectives or launches, bounded by requests),
// solves for offset and drift, and says which evidence it used, with an error bound.
//
// It never guesses: a clock without any evidence stays as it was recorded, and is reported as
// assumed. The mathematics is in align; docs/CLOCKS.md is for users.
package clocks
