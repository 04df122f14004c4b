package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is private, alone in its folder, and removed with it. Watchers are notified before it
// exists.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	heard := 0
	WatchTemporary(func() {
		heard++
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%v exists before it is watched", left)
		}
	})
	defer WatchTemporary(func() {})
	f, remove, err := TempFile("export.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folder := filepath.Dir(f.Name())
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(folder) != dir {
		t.Errorf("folder %s: %v, %v", folder, info.Mode(), err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 || heard != 1 || len(tempDirs) != 0 {
		t.Errorf("left %v, heard of %d", left, heard)
	}
}

// If the folder cannot be made, there is nothing to remove.
func TestNoRoom(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if f, _, err := TempFile("x"); err == nil {
		t.Errorf("made %s", f.Name())
	}
}
