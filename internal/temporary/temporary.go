// Package temporary makes temporary files that have a name, for what must be read by its
// path. They are where [os.TempDir] says, as all temporary files of the program.
//
// Whoever makes one removes it. If the program is interrupted, the others go with
// [RemoveAll], which package main calls: [Watch] tells it when there is something to
// remove.
//
// A [Spool] keeps what can be read once only, such as a pipe, for those who read it twice:
// little of it in memory, more in a temporary file.
package temporary

import (
	"os"
	"path/filepath"
	"sync"
)

var (
	mu    sync.Mutex
	dirs  = map[string]bool{} // that are in use
	watch = func() {}
)

// Watch calls f before something is made, from any goroutine.
func Watch(f func()) {
	mu.Lock()
	defer mu.Unlock()
	watch = f
}

// Dir makes a folder that nobody else can read, and returns it with what removes it and
// all that is in it.
func Dir() (path string, remove func() error, err error) {
	mu.Lock()
	f := watch
	mu.Unlock()
	f()
	// The lock keeps RemoveAll waiting until there is something to remove.
	mu.Lock()
	defer mu.Unlock()
	path, err = os.MkdirTemp("", "sgtrace-")
	if err != nil {
		return "", nil, err
	}
	dirs[path] = true
	return path, func() error {
		mu.Lock()
		defer mu.Unlock()
		delete(dirs, path)
		return os.RemoveAll(path)
	}, nil
}

// File makes an empty file of a name in a folder of its own. remove removes both, whether
// the file is closed or not.
func File(name string) (f *os.File, remove func() error, err error) {
	dir, remove, err := Dir()
	if err != nil {
		return nil, nil, err
	}
	f, err = os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return f, remove, nil
}

// RemoveAll removes everything that is in use, for the end of the program. Nothing can be
// made from then on.
func RemoveAll() {
	mu.Lock()
	for path := range dirs {
		os.RemoveAll(path)
	}
}
