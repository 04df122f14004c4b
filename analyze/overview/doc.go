// Package overview is the summary: the one screen that says what was read, how far it
// can be trusted, how the requests did, and what stands out. It asks all other reports
// for findings, merges those about the same thing, and orders them by cost.
package overview
