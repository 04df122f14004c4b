//go:build unix && !linux

package memory

import "os"

// reserve makes room for a part of a file on the disk.
func reserve(f *os.File, offset, size int64) error { return zero(f, offset, size) }
