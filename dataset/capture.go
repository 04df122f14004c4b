package dataset

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/tablefile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// Version is the version of the tables, and the name of the folder that holds them.
const Version = "v1"

// TasksFolder is the folder where package tasks records what tasks have agreed on.
const TasksFolder = "tasks"

// Names of folders, and of the file that describes a capture.
const (
	capturePrefix = "capture="
	Unfinished    = ".unfinished-" // prefix of captures that are being written
	inputsFile    = "inputs-0" + tablefile.ParquetSuffix
	versionKey    = "sgtrace.dataset"
	aboutKey      = "sgtrace.capture"
)

// About describes the input of a capture.
type About struct {
	Name     string // as given, and used in messages
	Path     string // absolute
	Label    string
	Format   string // format.Format.Name
	Hash     string // SHA-256 of the content
	Bytes    int64  // size; of a folder, the total size of its files
	Folder   bool   // it is a folder of files
	Tool     string // version of the program that wrote the capture
	Unusable string // why the input cannot be used at all; "" if it can
	Print    string // format.Source.Print
	// Said is the information in the name of the original, for a capture with pseudonyms; nil otherwise,
	// since Name has the information.
	Said *naming.Name
	// Inspected lists what profilers recorded, as 'sgtrace inspect' shows it; Listed is the same without
	// ranks and sizes. Both are nil for dumps.
	Inspected, Listed *inventory.Inventory
	First, Last       trace.Time // bounds of the recording, Unix ns on the host's clock; 0 is unknown
	Files             []File     // except the file of inputs
}

// A File is a file of a capture, as it was written.
type File struct {
	Name string
	Rows int64
	Hash string
}

// Redacted reports whether texts are pseudonyms; then the location of the original is unknown.
func (a *About) Redacted() bool { return a.Said != nil }

// place identifies the input in the name of the capture's folder: captures of one input at different times
// share it.
func (a *About) place() string { return digest(a.Path, a.Label)[:16] }

// folder returns the name of the capture's folder. Equal names mean equal contents.
func (a *About) folder() string {
	return capturePrefix + a.place() + "-" + digest(Version, a.Format, a.Hash)[:24]
}

func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Shard returns the shard of an input, from 0 to n-1, by its absolute path.
func Shard(path string, n int) int {
	sum := sha256.Sum256([]byte(path))
	value := uint64(0)
	for _, b := range sum[:8] {
		value = value<<8 | uint64(b)
	}
	return int(value % uint64(n))
}

// HashFiles returns the hash and total size of the content of files. The hash of several files includes
// their names.
func HashFiles(paths ...string) (hash string, size int64, err error) {
	h := sha256.New()
	for _, path := range paths {
		if len(paths) > 1 {
			fmt.Fprintf(h, "%s\x00", filepath.Base(path))
		}
		n, err := hashFile(h, path)
		if err != nil {
			return "", 0, err
		}
		size += n
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

func hashFile(h io.Writer, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(h, f)
}

// A Capture is a dataset's capture of an input.
type Capture struct {
	About
	Dir string
}

// Is reports whether a folder is a dataset.
func Is(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, Version))
	if err != nil || !info.IsDir() {
		return false
	}
	entries, err := os.ReadDir(filepath.Join(dir, Version))
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), capturePrefix) || strings.HasPrefix(e.Name(), Unfinished)
	})
}

// HasCaptures reports whether a dataset has any captures.
func HasCaptures(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, Version, capturePrefix+"*")) // the pattern is valid
	return len(found) > 0
}

// Captures returns the captures of a dataset, by name and label. A damaged one has no Format, and Unusable
// says why.
func Captures(dir string) (all []*Capture, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, Version))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), capturePrefix) {
			continue
		}
		c, err := open(filepath.Join(dir, Version, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was just replaced
		}
		if err != nil {
			path := filepath.Join(dir, Version, e.Name())
			c = &Capture{Dir: path, About: About{Name: path, Path: path, Unusable: "what it is of cannot be read: " + err.Error()}}
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b *Capture) int {
		return strings.Compare(a.Name+"\x00"+a.Label, b.Name+"\x00"+b.Label)
	})
	return all, nil
}

// open reads the description of a capture.
func open(dir string) (*Capture, error) {
	f, err := tablefile.OpenParquet(filepath.Join(dir, inputsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &Capture{Dir: dir}
	text, _ := f.About(aboutKey)
	if err := json.Unmarshal([]byte(text), &c.About); err != nil {
		return nil, err
	}
	return c, nil
}

// Has reports whether a dataset has the capture already.
func Has(dataset string, a *About) bool {
	_, err := os.Stat(filepath.Join(dataset, Version, a.folder()))
	return err == nil
}

// Open returns a capture in a dataset.
func Open(dataset string, a *About) (*Capture, error) {
	return open(filepath.Join(dataset, Version, a.folder()))
}

// Commit writes a capture and adds it to a dataset: completely, or not at all. It then removes earlier
// captures of the same input, and returns how many.
func Commit(dataset string, a *About, write func(dir string) error) (replaced int, err error) {
	parent := filepath.Join(dataset, Version)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return 0, err
	}
	dir := filepath.Join(parent, Unfinished+rand.Text())
	if err := os.Mkdir(dir, 0o777); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) // does nothing if it was renamed
	if err := cmp.Or(write(dir), syncDir(dir)); err != nil {
		return 0, err
	}
	final := filepath.Join(parent, a.folder())
	if err := os.Rename(dir, final); err != nil && !Has(dataset, a) {
		return 0, err // otherwise, another task wrote the same
	}
	if err := syncDir(parent); err != nil {
		return 0, err
	}
	return removeEarlier(parent, a)
}

// removeEarlier removes other captures of the same input.
func removeEarlier(parent string, a *About) (removed int, err error) {
	earlier, err := filepath.Glob(filepath.Join(parent, capturePrefix+a.place()+"-*"))
	if err != nil {
		return 0, err
	}
	for _, dir := range earlier {
		if filepath.Base(dir) == a.folder() {
			continue
		}
		if err := remove(dir); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// remove removes a capture; it disappears from the list of captures at once.
func remove(dir string) error {
	hidden := filepath.Join(filepath.Dir(dir), Unfinished+strings.TrimPrefix(filepath.Base(dir), capturePrefix))
	if err := os.Rename(dir, hidden); err != nil {
		return err
	}
	return os.RemoveAll(hidden)
}

// syncDir makes sure that the names in a folder are on disk.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // which does so itself, and has no way to request it
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Redact replaces the names of the input with pseudonyms before the input is read: by these, the dataset
// knows whether it has the input. [Write] redacts the rest.
func (a *About) Redact(m *redact.Maker) {
	m.LearnFile(a.Path)
	m.LearnFile(a.Name)
	m.LearnLabel(a.Label)
	a.Said = m.Says(a.Name)
	a.Name, a.Path, a.Label, a.Hash = m.Path(a.Name), m.Path(a.Path), m.Label(a.Label), m.Hash(a.Hash)
}

// redactRest redacts what reading the input revealed.
func (a *About) redactRest(m *redact.Maker) (err error) {
	a.Unusable, a.Print = m.Scrub(a.Unusable), m.Text(a.Print)
	for _, list := range []**inventory.Inventory{&a.Inspected, &a.Listed} {
		if *list != nil && err == nil {
			*list, err = redact.Struct(m, *list)
		}
	}
	return err
}

// learn tells the maker of pseudonyms which hosts and IDs the input has.
func (c *Content) learn() {
	m := c.Pseudonyms
	if d := c.Spans; d != nil {
		for i := range d.Resources {
			c.learnAttributes(d.Resources[i].Args)
		}
		for i := range d.Len() {
			c.learnAttributes(d.Span(i).Args)
		}
	}
	if c.Source == nil {
		return
	}
	for i, p := range c.Source.Profiles {
		m.LearnHost(p.Meta.Host)
		for _, label := range p.Meta.Parts {
			m.LearnLabel(label)
		}
		for _, is := range c.Are[i] {
			m.LearnHost(is.Host)
		}
	}
}

func (c *Content) learnAttributes(id trace.ArgsID) {
	for a := range c.Args.All(id) {
		if a.Kind == trace.ArgString {
			c.Pseudonyms.LearnAttribute(c.Syms.Name(a.Key), string(a.Bytes()))
		}
	}
}
