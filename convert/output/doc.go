// Package output makes a file appear whole or not at all: it is written without a name,
// or under a temporary one, verified on request, and only then gets its name.
package output
