package main

import (
	"fmt"
	"os"
	"strings"
)

// peakMemory returns the most memory that this process had at any time. Unlike the
// resource usage of a child, it has nothing of the process that started it.
func peakMemory() (bytes int64) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, peak, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fmt.Sscan(peak, &bytes)
	}
	return bytes << 10
}
