package memory

import (
	"os"
	"path/filepath"
	"sync"
)

var (
	tempMu    sync.Mutex
	tempDirs  = map[string]bool{} // in use
	tempWatch = func() {}
)

// WatchTemporary has f called before anything is created, on any goroutine.
func WatchTemporary(f func()) {
	tempMu.Lock()
	defer tempMu.Unlock()
	tempWatch = f
}

// TempDir makes a directory that nobody else can read. remove removes it with all its content.
func TempDir() (path string, remove func() error, err error) {
	tempMu.Lock()
	f := tempWatch
	tempMu.Unlock()
	f()
	// The lock keeps RemoveTemporary waiting until the directory is registered.
	tempMu.Lock()
	defer tempMu.Unlock()
	path, err = os.MkdirTemp("", "sgtrace-")
	if err != nil {
		return "", nil, err
	}
	tempDirs[path] = true
	return path, func() error {
		tempMu.Lock()
		defer tempMu.Unlock()
		delete(tempDirs, path)
		return os.RemoveAll(path)
	}, nil
}

// TempFile makes an empty file with a name in a directory of its own. remove removes both, whether or not the
// file is closed.
func TempFile(name string) (f *os.File, remove func() error, err error) {
	dir, remove, err := TempDir()
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

// RemoveTemporary removes all that is in use, at the end of the program. Nothing can be created from then on.
func RemoveTemporary() {
	tempMu.Lock()
	for path := range tempDirs {
		os.RemoveAll(path)
	}
}
