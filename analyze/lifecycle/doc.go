// Package lifecycle tells when servers start, drain, are started anew, hang, and die.
//
// A server is a place: a role on a host, and a number where there are several. Its
// processes are other things: a server that is started anew has new ones. What they wrote
// shows the life of each, from the first sign to the last one, and which one replaced
// which: one of the same rank that begins where the other one ended.
//
// Nothing else is taken for the end of a life or for a hang than requests that never end
// where others go on. Requests that are in flight when the dump ends are no such sign.
package lifecycle
