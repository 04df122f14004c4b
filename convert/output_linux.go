package convert

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openNameless opens a new file without a name in the directory of name; error messages call it
// name. However the program ends, even by kill -9, no trace of the file remains. It returns nil if
// the file system does not support such files, or if linkNameless could not name one.
func openNameless(name string) *os.File {
	fd, err := unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, newMode)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	// Without /proc, which a chroot may lack, linkNameless would fail after all the long work.
	if _, err := os.Stat(procLink(f)); err != nil {
		f.Close()
		return nil
	}
	return f
}

// linkNameless gives a name to f, a file from openNameless.
func linkNameless(f *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, procLink(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	return os.NewSyscallError("linkat", err)
}

// procLink returns a path to link f from: the only way that needs no privilege, see open(2).
func procLink(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
