//go:build !linux

package inputs

// mostOpen is how many files may be kept open between a look at them and reading.
func mostOpen() int { return fewOpen }
