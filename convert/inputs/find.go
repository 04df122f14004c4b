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

// A Search is a folder or a glob in an argument. Whatever it leads to besides captures is
// left out, counted, and no mistake.
type Search struct {
	Name string // as messages call it: "traces/", "dumps/*.zst"
	glob bool
	left leftOut
	// damage is why an archive was not unpacked to its end; nil of anything else.
	damage error
	// missing says what a dataset lacks of what was to be extracted.
	missing []string
}

// Find turns arguments into inputs: files, folders (with all folders below), archives of
// folders, globs that the shell did not expand, and "-". An argument may have a label, "label=path", which
// holds for everything that the path leads to. Names that a glob of exclude matches are
// left out.
//
// The result is sorted and has no repetitions, so that the order of arguments does not
// matter.
func Find(args []string, exclude ...string) ([]Input, error) {
	globs := globs(exclude)
	if err := globs.check(); err != nil {
		return nil, err
	}
	var inputs []Input
	excluded := 0
	for i, arg := range args {
		if slices.Contains(args[:i], arg) {
			continue // else two searches would share what there is
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
				found[i].Label = label // instead of those that a dataset has
			}
		}
		inputs = append(inputs, found...)
	}
	if len(inputs) == 0 && excluded > 0 {
		return nil, errors.New("--exclude leaves out every input")
	}
	return Unique(inputs), nil
}

// globs are what --exclude names.
type globs []string

// check finds mistakes in globs.
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

// match reports whether a glob matches the end of path: as many names of folders and
// files as the glob has.
func (g globs) match(path string) bool {
	names := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	return slices.ContainsFunc(g, func(glob string) bool {
		glob = strings.TrimSuffix(filepath.ToSlash(glob), "/")
		n := strings.Count(glob, "/") + 1
		matches, _ := filepath.Match(glob, strings.Join(names[max(0, len(names)-n):], "/"))
		return matches
	})
}

// find finds the inputs that one argument leads to: none if it names a file that is
// excluded.
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

// A walk looks for files in a folder and all folders below.
type walk struct {
	search  *Search
	exclude globs
	root    string          // the real path of the folder
	seen    map[string]bool // folders, by their real paths
	links   []string        // to folders, which come after all that are in their places
	inputs  []Input
	// The root is an archive that is called so, and nested in so many archives with itself;
	// "" and 0 is none.
	called string
	nested int
}

// link walks a folder that a link leads to, unless it contains the folder that is
// searched: somebody linked back up.
func (w *walk) link(name string) {
	if rel, err := filepath.Rel(realPath(name), w.root); err == nil && filepath.IsLocal(rel) {
		w.search.left.add(linkUp, name)
		return
	}
	w.folder(name)
}

// folder walks one folder, unless it was walked under another name.
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
	if err != nil || sniffFolder(filesOf(dir, entries)) != nil { // what cannot be read, reading says
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

// A kind is what an entry of a folder is, or leads to.
type kind uint8

const (
	aFile kind = iota
	aFolder
	another // a device, a pipe, a socket
)

// kindOf returns what an entry is or, if it is a link, leads to. A link that leads nowhere
// is taken for a file, so that reading it says so.
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

// filesOf names the files among the entries of a folder, but for hidden ones.
func filesOf(dir string, entries []fs.DirEntry) (names []string) {
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && kindOf(filepath.Join(dir, e.Name()), e) == aFile {
			names = append(names, e.Name())
		}
	}
	return names
}

// realPath returns the absolute path of a folder without links; of one that is gone, its
// name.
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
