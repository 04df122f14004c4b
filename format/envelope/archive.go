package envelope

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Bounds of an archive. An incident has thousands of files, and real files compress no better than
// maxExpansion; a small archive may always grow to smallExpansion.
const (
	maxEntries     = 100_000
	maxExpansion   = 200
	smallExpansion = 1 << 30
)

// Errors about archives that nobody would pack.
var (
	errManyEntries = fmt.Errorf("has more than %d entries", maxEntries)
	errNoIndex     = errors.New("it ends before the list of its files: it was cut off, or is still being written; copy it again")
	errExpands     = fmt.Errorf("expands to more than %d times its size", maxExpansion)
)

// A Left is an entry of an archive that was not unpacked, and the reason.
type Left struct {
	Name string
	Why  error
}

// Reasons for skipping entries.
var (
	ErrOutside = errors.New("its path leads out of the archive")
	ErrSpecial = errors.New("neither file nor folder")
)

// IsArchive reports whether a file with the given uncompressed head is a tar or zip archive.
func IsArchive(head []byte) bool { return isTar(head) || isZip(head) }

func isTar(head []byte) bool {
	const at = 257
	return len(head) > at && bytes.HasPrefix(head[at:], []byte("ustar"))
}

func isZip(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// Unpack writes the files of the archive at path, a possibly compressed tar archive or a zip archive, into the
// directory dir. It writes only regular files, and only below dir; it returns the other entries. The error is
// the reason to stop: files written before can be used, if there are any.
func Unpack(path, dir string) (left []Left, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	u := &unpacker{dir: dir, bytes: max(info.Size()*maxExpansion, smallExpansion)}
	content, err := Open(path, f)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if content.Outer == "" && isZip(content.Head) {
		err = u.zip(f, info.Size())
	} else {
		err = u.tar(tar.NewReader(content))
	}
	return u.left, err
}

// An unpacker writes files into a directory.
type unpacker struct {
	dir     string
	bytes   int64 // still allowed
	entries int
	left    []Left
}

func (u *unpacker) tar(r *tar.Reader) error {
	for {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return err
		}
		if err := u.entry(h.Name, h.FileInfo().Mode(), func() (io.ReadCloser, error) { return io.NopCloser(r), nil }); err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(f *os.File, size int64) error {
	r, err := zip.NewReader(f, size)
	switch {
	case errors.Is(err, zip.ErrFormat):
		return errNoIndex
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return err
	}
	for _, entry := range r.File {
		if err := u.entry(entry.Name, entry.Mode(), entry.Open); err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
	}
	return nil
}

// entry writes one entry. It creates directories for files as needed.
func (u *unpacker) entry(name string, mode fs.FileMode, open func() (io.ReadCloser, error)) error {
	if u.entries++; u.entries > maxEntries {
		return errManyEntries
	}
	path := filepath.FromSlash(name)
	switch {
	case mode.IsDir():
		return nil
	case !filepath.IsLocal(path):
		u.left = append(u.left, Left{name, ErrOutside})
		return nil
	case !mode.IsRegular():
		u.left = append(u.left, Left{name, ErrSpecial})
		return nil
	}
	content, err := open()
	if err != nil {
		return err
	}
	defer content.Close()
	return u.write(filepath.Join(u.dir, path), content)
}

// write creates a file. The directory contains no links, so that the file is below it.
func (u *unpacker) write(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, u.bytes+1))
	err = errors.Join(err, f.Close())
	if u.bytes -= n; u.bytes < 0 {
		return errors.Join(errExpands, os.Remove(path))
	}
	return err
}
