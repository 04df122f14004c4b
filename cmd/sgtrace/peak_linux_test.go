package main

import (
	"os"
	"syscall"
)

// peakMemory returns the most memory that a process that has ended had at any time.
func peakMemory(p *os.ProcessState) int64 {
	if usage, ok := p.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
