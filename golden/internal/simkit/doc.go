// Package simkit has what all simulators and writers share: virtual time (agenda.go), random
// identifiers (hex.go), files, and text in JSON (writing.go).
package simkit
