// Package ground is what simulators and writers stand on: virtual time (agenda.go), random
// identifiers (hex.go), files, and text in JSON (writing.go).
package ground
