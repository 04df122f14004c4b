package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// Size returns the size of a capture's files in bytes, and their number of rows.
func (c *Capture) Size() (bytes, rows int64, err error) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, 0, err
		}
		bytes += info.Size()
	}
	for _, f := range c.Files {
		rows += f.Rows
	}
	return bytes, rows, nil
}

// Remove removes a capture.
func (c *Capture) Remove() error { return remove(c.Dir) }

// RemoveUnfinished removes what tasks left behind that died before the given time. Anything newer may be in
// progress.
func RemoveUnfinished(dataset string, before time.Time) error {
	dirs, err := filepath.Glob(filepath.Join(dataset, Version, Unfinished+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case !info.ModTime().After(before):
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Verify returns the problems of a capture: files that are missing, foreign, or changed.
func (c *Capture) Verify() (problems []string) {
	tell := func(file, format string, values ...any) {
		problems = append(problems, filepath.Join(c.Dir, file)+": "+fmt.Sprintf(format, values...))
	}
	if c.Format == "" {
		return []string{c.Dir + ": " + c.Unusable}
	}
	if filepath.Base(c.Dir) != c.folder() {
		tell("", "the folder of another capture: it is of %s, %s", c.Name, c.folder())
	}
	for _, f := range c.Files {
		if err := f.verify(c.Dir); err != nil {
			tell(f.Name, "%v", err)
		}
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		tell("", "%v", err)
	}
	for _, e := range entries {
		if e.Name() != inputsFile && !slices.ContainsFunc(c.Files, func(f File) bool { return f.Name == e.Name() }) {
			tell(e.Name(), "not a file of the capture")
		}
	}
	return problems
}

// verify returns an error if a file has changed since it was written.
func (f *File) verify(dir string) error {
	path := filepath.Join(dir, f.Name)
	hash, _, err := HashFiles(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("missing")
	case err != nil:
		return err
	case hash != f.Hash:
		return errors.New("not as it was written: its hash is another")
	}
	file, err := tablefile.OpenParquet(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if version, _ := file.About(versionKey); version != Version || file.Rows() != f.Rows {
		return fmt.Errorf("has %d rows of version %s, and had %d of %s", file.Rows(), version, f.Rows, Version)
	}
	return nil
}

// Foreign returns everything among the captures of a dataset that does not belong there.
func Foreign(dataset string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dataset, Version))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), capturePrefix) && !strings.HasPrefix(e.Name(), Unfinished) && !strings.HasPrefix(e.Name(), solvedPrefix) && e.Name() != TasksFolder {
			names = append(names, filepath.Join(dataset, Version, e.Name()))
		}
	}
	return names, err
}

// Changed returns an error if the files of the original no longer have the extracted content.
func (c *Capture) Changed(paths []string) error {
	hash, _, err := HashFiles(paths...)
	if err == nil && hash != c.Hash {
		err = fmt.Errorf("%s: has changed since it was extracted", c.Path)
	}
	return err
}
