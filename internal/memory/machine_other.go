//go:build !linux

package memory

// held returns how much memory the process holds, and how much of that may be file pages: both are what the Go
// runtime holds.
func held() (all, pages int64) { return heap(), heap() }

// adviseHuge does nothing: other kernels have no such advice.
func adviseHuge(uintptr) {}

// Machine returns 0 for unknown.
func Machine() (total, available int64) { return 0, 0 }
