package inputs

import "golang.org/x/sys/unix"

// mostOpen is how many files may be kept open between a look at them and reading: some
// of those that the process may have, of which the rest is for what reads and writes.
func mostOpen() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return fewOpen
	}
	const share, most = 8, 64
	return int(min(limit.Cur/share, most))
}
