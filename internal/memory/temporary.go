package memory

import (
	"os"
	"path/filepath"
	"sync"
)

var (
	tempMu    sync.Mutex
	tempDirs  = map[string]bool{} // that are in use
	tempWatch = func() {}
)

// WatchTemporary calls f before something is made, from any goroutine.
func WatchTemporary(f func()) {
	tempMu.Lock()
	defer tempMu.Unlock()
	tempWatch = f
}

// TempDir makes a folder that nobody else can read, and returns it with what removes it and
// all that is in it.
func TempDir() (path string, remove func() error, err error) {
	tempMu.Lock()
	f := tempWatch
	tempMu.Unlock()
	f()
	// The lock keeps RemoveAll waiting until there is something to remove.
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

// TempFile makes an empty file of a name in a folder of its own. remove removes both, whether
// the file is closed or not.
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

// RemoveTemporary removes everything that is in use, for the end of the program. Nothing can be
// made from then on.
func RemoveTemporary() {
	tempMu.Lock()
	for path := range tempDirs {
		os.RemoveAll(path)
	}
}
