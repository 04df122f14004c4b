package inputs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/format/sglang"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// maxNested is how deep archives may be nested.
const maxNested = 2

// An archive is an unpacked archive of an incident folder.
type archive struct {
	dir    string // where its files are
	left   []envelope.Left
	err    error // why nothing, or no more, was unpacked
	remove func() error
}

// unpacked holds the unpacked archives by path: a command searches for its inputs more than once.
var unpacked = struct {
	sync.Mutex
	archives map[string]*archive
}{archives: map[string]*archive{}}

// RemoveUnpacked removes all unpacked archives. Call it at the end of the program.
func RemoveUnpacked() error {
	unpacked.Lock()
	defer unpacked.Unlock()
	var errs []error
	for path, a := range unpacked.archives {
		errs = append(errs, a.remove())
		delete(unpacked.archives, path)
	}
	return errors.Join(errs...)
}

// archiveName matches the usual names of archives. In folders, only archives with such a name are unpacked,
// since a program's own files may be archives, too.
var archiveName = lazyregexp.New(`(?i)\.(tar|tgz|tzst|zip|tar\.(gz|zst|zstd))$`)

// isArchive reports whether a file is an archive of the kind that people pack folders into.
func isArchive(path string) bool {
	// Opening a named pipe would take the place of its only reader, or wait for a writer.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	content, err := envelope.Open(path, f)
	if err != nil {
		return false
	}
	defer content.Close()
	return envelope.IsArchive(content.Head) && !sglang.ExpertDump.Sniff(content.Head) // PyTorch's files are zip archives, too
}

// unpackArchive unpacks an archive to a temporary folder, once.
func unpackArchive(path string) (*archive, error) {
	unpacked.Lock()
	defer unpacked.Unlock()
	key := realPath(path)
	if a := unpacked.archives[key]; a != nil {
		return a, nil
	}
	dir, remove, err := memory.TempDir()
	if err != nil {
		return nil, err
	}
	a := &archive{dir: dir, remove: remove}
	a.left, a.err = envelope.Unpack(path, dir)
	unpacked.archives[key] = a
	return a, nil
}

// inArchive finds the files in an archive as if it were a folder. name is its name for users, path is its
// location, and nested is the number of archives around it.
func (g globs) inArchive(name, path string, nested int) ([]Input, error) {
	a, err := unpackArchive(path)
	if err != nil {
		return nil, fmt.Errorf("%s: unpacking it to a temporary folder: %w (TMPDIR says where these go)", name, err)
	}
	entries, err := os.ReadDir(a.dir)
	switch {
	case err != nil:
		return nil, err
	case len(entries) == 0 && a.err != nil:
		return nil, fmt.Errorf("%s: %w", name, a.err)
	}
	w := &walk{search: &Search{Name: name + string(filepath.Separator), damage: a.err}, exclude: g, seen: map[string]bool{},
		root: a.dir, called: name, nested: nested + 1}
	for _, l := range a.left {
		w.search.left.add(leftInArchive[l.Why], l.Name)
	}
	w.folder(a.dir)
	if len(w.inputs) == 0 {
		return nil, fmt.Errorf("%s: no files in this archive%s", name, w.search.left.clause())
	}
	return w.inputs, nil
}

// leftInArchive maps the reasons why entries of archives were not unpacked.
var leftInArchive = map[error]reason{
	envelope.ErrOutside: {what: "file", whose: "outside of its archive", named: true, weight: 4},
	envelope.ErrSpecial: specialFile,
}

// archive treats an archive in a folder like a folder. It returns false if the archive cannot be unpacked; reading it then
// reports the error.
func (w *walk) archive(name string) bool {
	if w.nested >= maxNested || !archiveName.MatchString(name) || !isArchive(name) {
		return false
	}
	found, err := w.exclude.inArchive(w.nameOf(name), name, w.nested)
	if err != nil {
		return false
	}
	w.inputs = append(w.inputs, found...)
	return true
}

// input returns the input at path, under its name within an archive.
func (w *walk) input(path string) Input {
	in := Input{Name: w.nameOf(path), Search: w.search}
	if in.Name != path {
		in.unpacked = path
	}
	return in
}

// nameOf returns the name of a file of the walk for users.
func (w *walk) nameOf(path string) string {
	if w.called == "" {
		return path
	}
	rel, err := filepath.Rel(w.root, path)
	if err != nil {
		return path
	}
	return filepath.Join(w.called, rel)
}

// A file may expand on disk to at most maxExpansion times its size, which no export comes near, but always
// to at least smallExpansion bytes.
const (
	maxExpansion   = 200
	smallExpansion = 1 << 30
)

// unpack copies the content of the input to a temporary file, and returns its path. If the content is
// damaged, everything before the damage is used.
func (x *Source) unpack(diags *trace.Diags) (path string, err error) {
	content, err := x.open()
	if err != nil {
		return "", err
	}
	defer content.Close()
	f, remove, err := memory.TempFile("unpacked")
	if err != nil {
		return "", err
	}
	x.remove = remove
	most := int64(1<<63 - 1)
	if info, err := os.Stat(x.Input.Path()); err == nil && info.Mode().IsRegular() {
		most = max(info.Size()*maxExpansion, smallExpansion)
	}
	to := &bounded{w: f, left: most}
	_, err = io.Copy(to, content)
	if err != nil && to.err == nil && to.left < most {
		diags.Add(trace.InputDamaged.Of(x.name(), err))
		err = nil
	}
	err = errors.Join(err, f.Close())
	switch {
	case to.err == errBomb:
		return "", errBomb
	case err != nil:
		return "", fmt.Errorf("unpacking it to a temporary file: %w (TMPDIR says where these go)", err)
	}
	return f.Name(), nil
}

// errBomb is returned for a file that expands too much.
var errBomb = fmt.Errorf("expands to more than %d times its size, which no export does", maxExpansion)

// bounded writes to w, but at most left bytes.
type bounded struct {
	w    io.Writer
	left int64
	err  error // of w, or errBomb
}

func (b *bounded) Write(p []byte) (n int, err error) {
	if int64(len(p)) > b.left {
		b.err = errBomb
		return 0, b.err
	}
	n, b.err = b.w.Write(p)
	b.left -= int64(n)
	return n, b.err
}
