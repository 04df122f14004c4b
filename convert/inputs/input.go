package inputs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

// An Input is a file to read, or a folder whose files are one input of a format.
type Input struct {
	Name  string
	Label string // what the user says about it, from "label=path"
	// As is the format that the user takes it for, by the flag that names it; nil is any.
	As *format.Format
	// Search is the folder or glob that led to the file, nil if it was named.
	Search *Search
	// unpacked is where a file of an archive is; "" is of none.
	unpacked string
	// capture is what a dataset has of the input; nil is none.
	capture *dataset.Capture
}

// Path returns where the input is, which for a file in an archive, or in a dataset, is not its
// name.
func (in Input) Path() string {
	if in.capture != nil {
		return in.capture.Dir
	}
	return cmp.Or(in.unpacked, in.Name)
}

// Extracted reports whether the input is what a dataset has of it.
func (in Input) Extracted() bool { return in.capture != nil }

// Capture is what a dataset has of the input; nil if it is not in one.
func (in Input) Capture() *dataset.Capture { return in.capture }

// said is what the name of a file said of which a dataset has a pseudonym; nil is none.
func (in Input) said() *naming.Name {
	if in.capture == nil {
		return nil
	}
	return in.capture.Said
}

// Size returns the size of a file, or of the files in a folder; -1 if that is unknown. That of
// what a dataset has is that of the original.
func (in Input) Size() (bytes int64, folder bool) {
	if in.capture != nil {
		return in.capture.Bytes, in.capture.Folder
	}
	info, err := os.Stat(in.Path())
	switch {
	case err != nil:
		return -1, false
	case info.Mode().IsRegular():
		return info.Size(), false
	case !info.IsDir():
		return -1, false
	}
	entries, err := os.ReadDir(in.Path())
	if err != nil {
		return -1, true
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
	}
	return bytes, true
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Names returns the names of inputs.
func Names(inputs []Input) []string {
	return order.Each(inputs, func(in Input) string { return in.Name })
}

// Unique sorts inputs. Of several that name one file, one that has a label and
// was named is kept.
func Unique(inputs []Input) []Input {
	slices.SortFunc(inputs, func(a, b Input) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(b.Label, a.Label), order.Bool(a.Search != nil, b.Search != nil))
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
		info, err := os.Stat(in.Path())
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
	if base == "" {
		dir, base = filepath.Split(strings.TrimRight(arg, "/"))
	}
	switch {
	case strings.HasPrefix(arg, "-"):
		hint = "; after --, all arguments are inputs"
	case HasSuffix(arg, ".pftrace") || HasSuffix(arg, ".pftrace.gz"):
		hint = "; to write it, give -o " + arg
	case dir != "" && dir != arg && !Exists(dir):
		hint = "; there is no directory " + strings.TrimRight(dir, "/")
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
	return order.Each(entries, os.DirEntry.Name)
}

func HasSuffix(name, suffix string) bool { return strings.HasSuffix(strings.ToLower(name), suffix) }

// A Growing is a dump that is still being written.
type Growing struct {
	name  string
	diags *trace.Diags // about lines that cannot be used
	dump  *spantable.Table
}

// NewGrowing returns an empty dump that reports lines that cannot be used to diags. The
// name is for messages.
func NewGrowing(name string, diags *trace.Diags) *Growing {
	return &Growing{name: name, diags: diags, dump: newSpans(diags, false)}
}

// Read adds whole lines.
func (g *Growing) Read(lines []byte) error {
	g.dump.Diags = g.diags
	return otlpjson.Read(g.dump, g.name, bytes.NewReader(lines))
}

// Requests returns the requests of all that was read, nil without any spans. Nothing is
// reported: whatever is missing may still come.
func (g *Growing) Requests() *request.Set {
	if g.dump.Len() == 0 {
		return nil
	}
	g.dump.Diags = new(trace.Diags)
	return assembly.Build(g.dump).Set
}
