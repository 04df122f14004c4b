// Package straggler judges which rank of a group the others wait for, and whether that may be chance.
//
// Ranks that work together meet repeatedly: at the end of each step, and in each collective. Callers that observe
// these sync points (package rank for steps, package collective for collectives) collect the arrivals. The judge
// compares each rank's lateness with the median of the others, in blocks of time because neighboring steps are
// similar, and bounds the probability that equally fast ranks look like that. A rank may be late in some steps only
// (intermittent.go); pattern.go finds out which. Servers that work side by side do not wait for each other; they are
// judged by their places in the order of all instead (chance.go).
package straggler
