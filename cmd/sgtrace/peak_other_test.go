//go:build !linux

package main

// peakMemory is not implemented on this system.
func peakMemory() int64 { return 0 }
