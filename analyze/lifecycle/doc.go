// Package lifecycle says when servers start, drain, restart, hang, and die.
//
// A server is a place: a role on a host, and a number where there are several. A server that restarts
// has new processes. What these wrote shows the life of each, from its first sign to its last, and
// which process replaced which: one of the same rank that begins after the other ended.
//
// Only requests that never end while others go on are a sign that a server died or hangs. Requests that
// are in flight when the dump ends are not.
package lifecycle
