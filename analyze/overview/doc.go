// Package overview is the summary: the one screen that says what was read, how far it
// can be trusted, how the requests did, and what stands out. It asks the
// reports on requests, changes, tails, GPUs, collectives and ranks for findings, merges
// those about the same thing, and orders them by cost.
package overview
