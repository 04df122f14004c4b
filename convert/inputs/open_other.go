//go:build !linux

package inputs

// mostOpen returns how many files may be kept open between recognition and reading.
func mostOpen() int { return fewOpen }
