package inputs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/dataset/tasks"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// inDataset returns the inputs that a dataset has captures of, under the names of their originals. If
// several have the same name, because they were extracted in different folders, it uses their paths.
func (g globs) inDataset(dir string) (inputs []Input, err error) {
	captures, err := dataset.Captures(dir)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, c := range captures {
		count[c.Name]++
	}
	search := &Search{Name: filepath.Clean(dir) + string(filepath.Separator), missing: tasks.Missing(dir)}
	for _, c := range captures {
		in := Input{Name: c.Name, Label: c.Label, Search: search, capture: c}
		if count[c.Name] > 1 {
			in.Name = c.Path
		}
		if g.match(in.Name) {
			search.left.add(excludedFile, in.Name)
			continue
		}
		inputs = append(inputs, in)
	}
	if len(inputs) == 0 {
		return nil, fmt.Errorf("%s: no captures in this dataset%s", dir, search.left.clause())
	}
	return inputs, nil
}

// recognizeCapture adopts the format of the original.
func (x *Source) recognizeCapture() error {
	name := x.Input.capture.Format
	if name == "" {
		return errors.New(x.Input.capture.Unusable)
	}
	i := slices.IndexFunc(Formats, func(f *format.Format) bool { return f.Name == name })
	if i < 0 {
		return fmt.Errorf("is a capture of a format that this version of sgtrace does not read: %s", name)
	}
	x.Format = Formats[i]
	return nil
}

// indexCapture reads the dataset's capture of the input.
func (x *Source) indexCapture(in *format.Input, opt *format.Options) (*format.Source, error) {
	original := x.original
	if x.closed {
		original = nil
	}
	return x.Input.capture.Index(x.Format, in, opt, original)
}

// ErrRedacted is returned if a dataset does not say where an original is.
var ErrRedacted = errors.New("the dataset is redacted and does not say where its originals are; --without-originals draws what it has")

// Original returns the original of a capture, which may be in an archive, or an error if it is gone.
func Original(c *dataset.Capture) (Input, error) {
	if c.Redacted() {
		return Input{}, ErrRedacted
	}
	_, err := os.Stat(c.Path)
	if err == nil {
		return Input{Name: c.Path}, nil
	}
	for path := filepath.Dir(c.Path); path != filepath.Dir(path); path = filepath.Dir(path) {
		if !isArchive(path) {
			continue
		}
		found, err := globs(nil).inArchive(path, path, 0)
		if err != nil {
			return Input{}, c.Gone(err)
		}
		for _, in := range found {
			if in.Name == c.Path {
				return in, nil
			}
		}
	}
	return Input{}, c.Gone(errors.Unwrap(err))
}

// Unchanged returns an error if the original of a capture has changed or is gone.
func Unchanged(c *dataset.Capture) error {
	in, err := Original(c)
	if err != nil {
		return err
	}
	paths, err := in.Files()
	if err != nil {
		return err
	}
	return c.Changed(paths)
}

// original reads the original of a capture, for data that the dataset lacks.
func (x *Source) original(opt *format.Options) (*format.Source, error) {
	c := x.Input.capture
	in, err := Original(c)
	if err != nil {
		return nil, err
	}
	if size, folder := in.Size(); size != c.Bytes && !folder {
		return nil, c.Gone(fmt.Errorf("it has changed, from %d bytes to %d", c.Bytes, size))
	}
	in.unpacked = in.Path()
	in.Name, in.Label, in.Search = x.Input.Name, x.Input.Label, x.Input.Search
	o := &Source{Input: in}
	x.reopened = append(x.reopened, o)
	if err := o.recognize(false); err != nil {
		return nil, err
	}
	if err := o.index(opt); err != nil {
		return nil, err
	}
	source := *o.Content
	source.Close = nil // o closes it
	return &source, nil
}

// Window reads the recordings of an input again, for a window of time on its clock.
func (m *Loaded) Window(x *Source, files []*ProcessProfile, w Extent, workers int) {
	if x.Content.Stream == nil {
		return
	}
	filter := m.opt.Filter
	filter.From, filter.To = w.From, w.To
	filter.IndexOnly, filter.Fingerprint = m.isOut(x), false
	opt := m.options(filter, workers)
	opt.Diags = &trace.Diags{} // problems were reported when it was first read
	profiles, err := x.Content.Stream(opt)
	if err != nil { // the input is gone, perhaps long since if a dataset has its tables
		m.unusable(x.Input, err)
		return
	}
	for _, f := range files {
		for _, p := range profiles {
			if x.sameProcess(p, f.Profile, len(profiles)) {
				f.Replace(p)
			}
		}
	}
}

// sameProcess reports whether p, one of the profiles that were read again, is of the same process as before. of is
// their number.
func (x *Source) sameProcess(p, before *profile.Profile, of int) bool {
	switch {
	case x.Format.Machine:
		return p.Meta.PID == before.Meta.PID
	case of == 1:
		return true // even if the window cut off the events with its pid or rank
	}
	return p.Meta.PID == before.Meta.PID && p.Meta.Rank == before.Meta.Rank
}

// Collectives reads the collectives of an input whose rows are walked, for each of its profiles. Problems
// with the input were reported when it was opened.
func (m *Loaded) Collectives(x *Source) ([]*profile.Profile, error) {
	opt := m.options(profile.Filter{IndexOnly: true, CollectivesOnly: true}, 0)
	opt.Diags, opt.Args = &trace.Diags{}, nil
	return x.Content.Stream(opt)
}

// An Extent is an inclusive range of time.
type Extent struct{ From, To trace.Time }

func (e Extent) Has(t trace.Time) bool { return t >= e.From && t <= e.To }
