// Package output writes a timeline in the format that the file's extension asks for, and
// makes the file appear whole or not at all. The file is written without a name, or under a
// temporary one where a system has no nameless files. It is read back and compared if the
// user asks for that. Only then does it get its name.
//
// A file that is an input, or that its owner protected, is never replaced.
package output
