package memory

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// reserve makes room for a part of a file on the disk.
func reserve(f *os.File, offset, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, offset, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return zero(f, offset, size)
	}
	return err
}

// held returns how much memory the process holds, and how much of that are pages of files;
// what the Go runtime holds where the kernel does not tell.
func held() (all, pages int64) {
	data, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		page := int64(os.Getpagesize())
		if _, err := fmt.Sscan(string(data), new(int64), &all, &pages); err == nil {
			return all * page, pages * page
		}
	}
	return heap(), 0
}

// Machine returns how much memory there is: that of the machine, or of the container if
// it has less; 0 is unknown.
func Machine() int64 {
	total := int64(0)
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
				kib, _ := strconv.ParseInt(f[1], 10, 64)
				total = kib << 10
			}
		}
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && (total == 0 || limit < total) {
			total = limit // "max" and huge numbers are no limit
		}
	}
	return total
}
