package memory

import (
	"bytes"
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
	counts.Lock()
	defer counts.Unlock()
	n, _ := f.ReadAt(counts.text[:], 0) // with io.EOF, as it is short
	_, rest, _ := bytes.Cut(counts.text[:n], space)
	resident, rest, _ := bytes.Cut(rest, space)
	shared, _, found := bytes.Cut(rest, space)
	if !found {
		return heap(), 0
	}
	page := int64(os.Getpagesize())
	all, _ = strconv.ParseInt(string(resident), 10, 64)
	pages, _ = strconv.ParseInt(string(shared), 10, 64)
	return all * page, pages * page
}

// counts holds what statm said last, so that asking allocates nothing.
var counts struct {
	sync.Mutex
	text [128]byte
}

var space = []byte(" ")

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
