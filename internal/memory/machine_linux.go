package memory

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// held returns how much memory the process holds, and how much of that is file pages. Where the kernel does not
// say, both are what the Go runtime holds.
func held() (all, pages int64) {
	f, err := statm()
	if err != nil {
		return heap(), 0
	}
	counts.Lock()
	defer counts.Unlock()
	n, _ := f.ReadAt(counts.text[:], 0) // returns io.EOF, as the file is short
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

// counts holds the last content of statm, so that reading it again does not allocate.
var counts struct {
	sync.Mutex
	text [128]byte
}

var space = []byte(" ")

// statm opens the kernel's memory statistics of the process once, as they are read often.
var statm = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/statm") })

// adviseHuge asks for a huge page. Where the kernel has none, nothing changes.
func adviseHuge(page uintptr) {
	unix.Syscall(unix.SYS_MADVISE, page, hugePage, unix.MADV_HUGEPAGE)
}

// Machine returns the total memory of the machine, or of the container if that has less, and how much of it is
// available to a new process, also considering "ulimit -d"; 0 is unknown.
func Machine() (total, available int64) {
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		total, available = meminfo(string(data), "MemTotal:"), meminfo(string(data), "MemAvailable:")
	}
	for _, group := range controlGroups {
		limit, ok := number(group.limit) // not ok: "max" is no limit
		if !ok || total > 0 && limit >= total {
			continue // nor are huge numbers
		}
		total, available = limit, min(available, limit)
		if used, ok := number(group.used); ok {
			available = min(available, max(limit-used, 0))
		}
	}
	var data unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_DATA, &data) == nil && data.Cur < uint64(available) {
		available = int64(data.Cur)
	}
	return total, available
}

// controlGroups are the files of cgroup versions 2 and 1 that hold the memory limit and the memory in use.
var controlGroups = []struct{ limit, used string }{
	{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
	{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
}

// meminfo returns a value of /proc/meminfo in bytes, 0 if it is not there.
func meminfo(text, name string) int64 {
	_, rest, _ := strings.Cut(text, name)
	if f := strings.Fields(rest); len(f) > 0 {
		kib, _ := strconv.ParseInt(f[0], 10, 64)
		return kib << 10
	}
	return 0
}

// number reads a file that holds one number.
func number(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}
