package memory

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// held returns how much memory the process holds, and how much of that are pages of files;
// what the Go runtime holds where the kernel does not tell.
func held() (all, pages int64) {
	f, err := statm()
	if err != nil {
		return heap(), 0
	}
	var text [128]byte
	n, _ := f.ReadAt(text[:], 0) // with io.EOF, as it is short
	if counts := strings.Fields(string(text[:n])); len(counts) > 2 {
		page := int64(os.Getpagesize())
		all, _ = strconv.ParseInt(counts[1], 10, 64)
		pages, _ = strconv.ParseInt(counts[2], 10, 64)
		return all * page, pages * page
	}
	return heap(), 0
}

// statm opens the counts that the kernel keeps of the memory of the process, once: they are
// read often.
var statm = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/statm") })

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
