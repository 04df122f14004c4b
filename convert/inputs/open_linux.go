package inputs

import "golang.org/x/sys/unix"

// mostOpen returns how many files may be kept open between recognition and reading: a fraction of the
// process's limit, which is also needed for reading and writing.
func mostOpen() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return fewOpen
	}
	const share, most = 8, 64
	return int(min(limit.Cur/share, most))
}
