package inputs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/internal/tracename"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

// An Input is a file to read, or a folder whose files are one input of a format.
type Input struct {
	Name  string
	Label string // what the user says about it, from "label=path"
	// As is the format that the user takes it for, by the flag that names it; nil is any.
	As *format.Format
	// Found says that a directory or a glob led to the file: that it is something
	// else altogether is no mistake then.
	Found bool
}

// Expand turns arguments into the names of files: globs that the shell did not
// expand, directories (all files in them, not below), "-". The result is sorted
// and has no repetitions, so that the order of arguments does not matter.
func Expand(args []string) ([]string, error) {
	var inputs []Input
	for _, arg := range args {
		found, err := expand(arg)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return Names(Unique(inputs)), nil
}

// Find is like Expand for arguments that may have labels: "label=path". The
// label holds for every file that the path leads to.
func Find(args []string) ([]Input, error) {
	var inputs []Input
	for _, arg := range args {
		label, path := tracename.SplitLabel(arg, Exists)
		found, err := expand(path)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Label = label
		}
		inputs = append(inputs, found...)
	}
	return Unique(inputs), nil
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Names returns the names of inputs.
func Names(inputs []Input) []string {
	var names []string
	for _, in := range inputs {
		names = append(names, in.Name)
	}
	return names
}

// Unique sorts inputs. Of several that name one file, one that has a label and
// was asked for by name is kept.
func Unique(inputs []Input) []Input {
	slices.SortFunc(inputs, func(a, b Input) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(b.Label, a.Label), order.Bool(a.Found, b.Found))
	})
	inputs = slices.CompactFunc(inputs, func(a, b Input) bool { return a.Name == b.Name })
	return withoutSpellings(inputs)
}

// withoutSpellings leaves out inputs that are a file that is among them already: by
// another spelling of its name, or a link. Of these, one with a label is kept.
func withoutSpellings(inputs []Input) []Input {
	type look struct{ size, changed int64 }
	seen := map[look][]int{} // by what is alike about files that are one
	infos := make([]fs.FileInfo, len(inputs))
	drop := make([]bool, len(inputs))
	for i, in := range inputs {
		info, err := os.Stat(in.Name)
		if err != nil || !info.Mode().IsRegular() || in.Name == Stdin {
			continue
		}
		infos[i] = info
		key := look{info.Size(), info.ModTime().UnixNano()}
		for _, k := range seen[key] {
			if !drop[k] && os.SameFile(infos[k], info) {
				other := i
				if in.Label != "" && inputs[k].Label == "" {
					other = k
				}
				drop[other] = true
				break
			}
		}
		seen[key] = append(seen[key], i)
	}
	kept := inputs[:0]
	for i, in := range inputs {
		if !drop[i] {
			kept = append(kept, in)
		}
	}
	return kept
}

// filesOf names the files among the entries of a folder, but for hidden ones.
func filesOf(dir string, entries []fs.DirEntry) (names []string) {
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && leadsToFile(filepath.Join(dir, e.Name()), e) {
			names = append(names, e.Name())
		}
	}
	return names
}

// leadsToFile reports whether an entry of a directory is a file, or a link to one. A link
// that leads nowhere is taken for one, so that reading it says so.
func leadsToFile(name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(name)
	return err != nil || info.Mode().IsRegular()
}

// expand finds the files that one argument leads to.
func expand(arg string) (inputs []Input, err error) {
	if arg == Stdin {
		return []Input{{Name: arg}}, nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		names := filesOf(arg, entries)
		if sniffHead(format.Head{Files: names}) != nil {
			return []Input{{Name: arg}}, nil // one input of several files
		}
		for _, name := range names {
			inputs = append(inputs, Input{Name: filepath.Join(arg, name), Found: true})
		}
		if len(inputs) == 0 {
			return nil, fmt.Errorf("%s: the directory has no files; those in directories below it are not taken", arg)
		}
	case err == nil:
		inputs = append(inputs, Input{Name: arg})
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?["):
		matches, err := filepath.Glob(arg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: a [ without a ], or a \\ at the end", arg, err)
		}
		for _, name := range matches {
			if info, err := os.Stat(name); err == nil && !info.IsDir() {
				inputs = append(inputs, Input{Name: name, Found: true})
			}
		}
		if len(inputs) == 0 {
			return nil, fmt.Errorf("%s: no file matches", arg)
		}
	default:
		return nil, unfound(arg, err)
	}
	return inputs, nil
}

// unfound says why an argument leads to no file, and what may have been meant.
func unfound(arg string, err error) error {
	var failed *fs.PathError
	switch {
	case arg == "":
		return errors.New("the name of an input is empty: an argument is ''")
	case !errors.As(err, &failed):
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", arg, failed.Err)
	}
	hint := ""
	dir, base := filepath.Split(arg)
	switch {
	case strings.HasPrefix(arg, "-"):
		hint = "; after --, all arguments are inputs"
	case HasSuffix(arg, ".pftrace") || HasSuffix(arg, ".pftrace.gz"):
		hint = "; an output is named by -o " + arg
	case dir != "" && !Exists(dir):
		hint = ", nor the directory " + dir
	default:
		if near := similar.Best(base, filesIn(dir)); near != "" {
			hint = "; did you mean " + dir + near + "?"
		}
	}
	return fmt.Errorf("%s: %w%s", arg, failed.Err, hint)
}

// filesIn names what is in a directory, as far as that can be read; "" is the working
// directory.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func HasSuffix(name, suffix string) bool { return strings.HasSuffix(strings.ToLower(name), suffix) }
