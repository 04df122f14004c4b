// Package straggler judges which rank of a group the others wait for, and whether that
// may be chance.
//
// Ranks that work together meet again and again: at the end of each step, in each
// collective. Whoever measures these sync points (package rank for steps, package
// collective for collectives) gathers the arrivals; the judge compares each rank's
// lateness with the median of the others, in blocks of time, since neighboring steps
// are alike, and bounds the probability that equally fast ranks look like that. A rank may
// be late in some steps only (intermittent.go); pattern.go says in which. Servers that
// work side by side do not wait for each other: their places in the order of all are judged
// instead (chance.go).
package straggler
