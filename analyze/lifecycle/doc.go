// Package lifecycle tells when servers start, drain, restart, hang, and die.
//
// A server is a place: a role on a host, and a number where there are several. Its
// processes are separate: a server that restarts has new ones. What they wrote shows
// the life of each, from its first sign to its last, and which process replaced which: one
// of the same rank that begins where the other ended.
//
// Only requests that never end while others go on count as a sign that a server died or hangs.
// Requests that are in flight when the dump ends do not.
package lifecycle
