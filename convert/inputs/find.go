package inputs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Search is a folder or a glob in an argument. Files that it finds besides captures are left out and
// counted; they are not errors.
type Search struct {
	Name string // name for messages: "traces/", "dumps/*.zst"
	glob bool
	left leftOut
	// damage is why an archive was not unpacked to its end; nil if it was, or is not an archive.
	damage error
	// missing says what should have been extracted but is not in the dataset.
	missing []string
}

// Find turns arguments into inputs: files, folders (with all folders below), archives of folders, globs
// that the shell did not expand, and "-". An argument may have a label, "label=path", which applies to
// everything below the path. Names that match a glob of exclude are left out.
//
// The result is sorted and has no duplicates, so the order of arguments does not matter.
func Find(args []string, exclude ...string) ([]Input, error) {
	globs := globs(exclude)
	if err := globs.check(); err != nil {
		return nil, err
	}
	var inputs []Input
	excluded := 0
	for i, arg := range args {
		if slices.Contains(args[:i], arg) {
			continue // otherwise, two searches would share the files
		}
		label, path := naming.SplitLabel(arg, Exists)
		found, err := globs.find(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			excluded++
		}
		for i := range found {
			if label != "" {
				found[i].Label = label // overrides the labels in a dataset
			}
		}
		inputs = append(inputs, found...)
	}
	if len(inputs) == 0 && excluded > 0 {
		return nil, errors.New("--exclude leaves out every input")
	}
	return Unique(inputs), nil
}

// globs are the values of --exclude.
type globs []string

// check reports malformed globs.
func (g globs) check() error {
	for _, glob := range g {
		if _, err := filepath.Match(glob, ""); err != nil {
			return badGlob(glob, err)
		}
	}
	return nil
}

func badGlob(glob string, err error) error {
	return fmt.Errorf("%s: %w: a [ without a ], or a \\ at the end", glob, err)
}

// match reports whether a glob matches the last elements of path, as many as the glob has.
func (g globs) match(path string) bool {
	names := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	return slices.ContainsFunc(g, func(glob string) bool {
		glob = strings.TrimSuffix(filepath.ToSlash(glob), "/")
		n := strings.Count(glob, "/") + 1
		matches, _ := filepath.Match(glob, strings.Join(names[max(0, len(names)-n):], "/"))
		return matches
	})
}

// find finds the inputs that one argument leads to; none if it names an excluded file.
func (g globs) find(arg string) ([]Input, error) {
	if arg == Stdin {
		return []Input{{Name: arg}}, nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && dataset.Is(arg):
		return g.inDataset(arg)
	case err == nil && info.IsDir():
		return g.inFolder(arg)
	case err == nil && g.match(arg):
		return nil, nil
	case err == nil && isArchive(arg):
		return g.inArchive(arg, arg, 0)
	case err == nil:
		return []Input{{Name: arg}}, nil
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?["):
		return g.matching(arg)
	}
	return nil, unfound(arg, err)
}

// matching finds the files that a glob matches.
func (g globs) matching(glob string) (inputs []Input, err error) {
	names, err := filepath.Glob(glob)
	if err != nil {
		return nil, badGlob(glob, err)
	}
	search := &Search{Name: glob, glob: true}
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case err != nil || info.IsDir():
		case g.match(name):
			search.left.add(excludedFile, name)
		case archiveName.MatchString(name) && isArchive(name):
			found, err := g.inArchive(name, name, 0)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, found...)
		default:
			inputs = append(inputs, Input{Name: name, Search: search})
		}
	}
	if len(inputs) == 0 {
		return nil, fmt.Errorf("%s: no file matches%s", glob, search.left.clause())
	}
	return inputs, nil
}

// inFolder finds the files in a folder and in all folders below.
func (g globs) inFolder(dir string) ([]Input, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if sniffFolder(filesOf(dir, entries)) != nil {
		return []Input{{Name: dir}}, nil
	}
	w := &walk{search: &Search{Name: filepath.Clean(dir) + string(filepath.Separator)}, exclude: g, seen: map[string]bool{}}
	w.root = realPath(dir)
	w.folder(dir)
	for len(w.links) > 0 {
		link := w.links[0]
		w.links = w.links[1:]
		w.link(link)
	}
	if len(w.inputs) == 0 {
		return nil, fmt.Errorf("%s: no files in this folder or below%s", dir, w.search.left.clause())
	}
	return w.inputs, nil
}

// A walk searches a folder and all folders below it.
type walk struct {
	search  *Search
	exclude globs
	root    string          // real path of the folder
	seen    map[string]bool // visited folders, by real path
	links   []string        // links to folders, walked after the real folders
	inputs  []Input
	// If the root is an archive, called is its name for users, and nested is how many archives deep it is,
	// counting itself; otherwise, "" and 0.
	called string
	nested int
}

// link walks a folder that a link leads to, unless it contains the searched folder: then the link leads
// back up.
func (w *walk) link(name string) {
	if rel, err := filepath.Rel(realPath(name), w.root); err == nil && filepath.IsLocal(rel) {
		w.search.left.add(linkUp, name)
		return
	}
	w.folder(name)
}

// folder walks a folder, unless it was walked under another name.
func (w *walk) folder(dir string) {
	path := realPath(dir)
	if w.seen[path] {
		return
	}
	w.seen[path] = true
	if dataset.Is(dir) { // its originals may be here, too
		w.search.left.add(ownFile("dataset"), dir)
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil || sniffFolder(filesOf(dir, entries)) != nil { // an unreadable folder is reported when it is read
		w.inputs = append(w.inputs, w.input(dir))
		return
	}
	for _, e := range entries {
		w.entry(filepath.Join(dir, e.Name()), e)
	}
}

func (w *walk) entry(name string, e fs.DirEntry) {
	kind := kindOf(name, e)
	left := &w.search.left
	switch {
	case strings.HasPrefix(e.Name(), "."):
		left.add(hidden[kind], name)
	case w.exclude.match(name):
		left.add(excluded[kind], name)
	case kind == aFile && w.archive(name):
	case kind == aFile:
		w.inputs = append(w.inputs, w.input(name))
	case kind == aFolder && e.IsDir():
		w.folder(name)
	case kind == aFolder:
		w.links = append(w.links, name)
	default:
		left.add(specialFile, name)
	}
}

// A kind is what an entry of a folder is, or links to.
type kind uint8

const (
	aFile kind = iota
	aFolder
	another // a device, a pipe, a socket
)

// kindOf returns the kind of an entry, following links. A broken link counts as a file, so that reading it
// reports the error.
func kindOf(name string, e fs.DirEntry) kind {
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(name)
		if err != nil {
			return aFile
		}
		mode = info.Mode()
	}
	switch {
	case mode.IsDir():
		return aFolder
	case mode.IsRegular():
		return aFile
	}
	return another
}

// filesOf returns the names of a folder's files, except hidden ones.
func filesOf(dir string, entries []fs.DirEntry) (names []string) {
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && kindOf(filepath.Join(dir, e.Name()), e) == aFile {
			names = append(names, e.Name())
		}
	}
	return names
}

// realPath returns the absolute path of a folder with links resolved, or dir itself if it is gone.
func realPath(dir string) string {
	path, err := filepath.EvalSymlinks(dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return dir
	}
	return path
}
