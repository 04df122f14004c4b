// Package output writes a timeline in the format that the name of the file asks for, and
// makes the file appear whole or not at all: it is written without a name, or under a
// temporary one where a system has no nameless files; it is read back and compared if the
// user wants that; and only then it gets its name.
//
// A file that is an input, or that its owner protected, is never replaced.
package output
