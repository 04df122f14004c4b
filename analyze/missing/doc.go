// Package missing tells which spans were lost on their way to a dump, as far as others
// show it. They are no sign that anything is wrong with the servers.
package missing
