//go:build !linux

package memory

// held returns how much memory the process holds, as far as that is known, and how much of
// that may be pages of files.
func held() (all, pages int64) { return heap(), heap() }

// adviseHuge does nothing: no other kernel takes such advice.
func adviseHuge(uintptr) {}

// Machine returns 0: how much memory there is, and how much is available, is unknown.
func Machine() (total, available int64) { return 0, 0 }
