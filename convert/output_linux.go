package convert

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openNameless opens a new file without a name in the directory of name, whose
// messages call it so. Whatever ends the program, even a kill -9, nothing of it is
// left. It returns nil where the file system has no such files, or where one
// could not be given a name.
func openNameless(name string) *os.File {
	fd, err := unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, newMode)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	// Without /proc, which a chroot may lack, linkNameless would fail after the long
	// work.
	if _, err := os.Stat(procLink(f)); err != nil {
		f.Close()
		return nil
	}
	return f
}

// linkNameless gives f, of openNameless, a name.
func linkNameless(f *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, procLink(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	return os.NewSyscallError("linkat", err)
}

// procLink is the one way to link a file that needs no privilege: open(2).
func procLink(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
