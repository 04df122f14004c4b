package main

import (
	"fmt"
	"os"
	"strings"
)

// peakMemory returns the peak memory of this process. Unlike the resource usage of a child, it
// includes nothing of the parent process.
func peakMemory() (bytes int64) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, peak, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fmt.Sscan(peak, &bytes)
	}
	return bytes << 10
}
