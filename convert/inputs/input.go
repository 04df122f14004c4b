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

// Stdin is the name for standard input.
const Stdin = "-"

// An Input is a file to read, or a folder whose files together are one input of a format.
type Input struct {
	Name  string
	Label string // the user's label, from "label=path"
	// As is the format that the user's flag implies; nil is any.
	As *format.Format
	// Search is the folder or glob that led to the file; nil if it was named.
	Search *Search
	// unpacked is the path of a file from an archive; "" otherwise.
	unpacked string
	// capture is a dataset's capture of the input; nil if it is not from a dataset.
	capture *dataset.Capture
}

// Path returns the location of the input, which differs from its name for a file in an archive or a
// dataset.
func (in Input) Path() string {
	if in.capture != nil {
		return in.capture.Dir
	}
	return cmp.Or(in.unpacked, in.Name)
}

// Extracted reports whether the input is a capture in a dataset.
func (in Input) Extracted() bool { return in.capture != nil }

// Capture returns the dataset's capture of the input; nil if it is not from a dataset.
func (in Input) Capture() *dataset.Capture { return in.capture }

// said returns the facts in the original name of a file for which a dataset has only a pseudonym; nil otherwise.
func (in Input) said() *naming.Name {
	if in.capture == nil {
		return nil
	}
	return in.capture.Said
}

// Size returns the size of a file, or of the files in a folder, in bytes; -1 if it is unknown. For a
// capture in a dataset, it is the size of the original.
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

// Unique sorts inputs. If several have the same name, it keeps one that has a label and was named rather
// than found.
func Unique(inputs []Input) []Input {
	slices.SortFunc(inputs, func(a, b Input) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(b.Label, a.Label), order.Bool(a.Search != nil, b.Search != nil))
	})
	inputs = slices.CompactFunc(inputs, func(a, b Input) bool { return a.Name == b.Name })
	return withoutSpellings(inputs)
}

// withoutSpellings leaves out inputs that are the same file as another input, under another spelling of its
// name or through a link. It keeps one with a label if there is one.
func withoutSpellings(inputs []Input) []Input {
	type look struct{ size, changed int64 }
	seen := map[look][]int{} // candidates for the same file, by size and modification time
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

// unfound explains why an argument leads to no file, and suggests what may have been meant.
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

// filesIn returns the names in a directory, as far as it can be read; "" is the working directory.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	return order.Each(entries, os.DirEntry.Name)
}

func HasSuffix(name, suffix string) bool { return strings.HasSuffix(strings.ToLower(name), suffix) }

// A Growing is a dump that is still being written.
type Growing struct {
	name  string
	diags *trace.Diags // for unusable lines
	dump  *spantable.Table
}

// NewGrowing returns an empty dump that reports unusable lines to diags. The name is for messages.
func NewGrowing(name string, diags *trace.Diags) *Growing {
	return &Growing{name: name, diags: diags, dump: newSpans(diags, false)}
}

// Read adds complete lines.
func (g *Growing) Read(lines []byte) error {
	g.dump.Diags = g.diags
	return otlpjson.Read(g.dump, g.name, bytes.NewReader(lines))
}

// Requests returns the requests of everything read so far; nil without any spans. It reports no problems:
// missing parts may still come.
func (g *Growing) Requests() *request.Set {
	if g.dump.Len() == 0 {
		return nil
	}
	g.dump.Diags = new(trace.Diags)
	return assembly.Build(g.dump).Set
}
