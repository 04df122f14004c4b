package inputs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// Recognize looks at inputs, and returns those that can be read, each by itself: dumps and logs,
// what profilers recorded, and what is neither. What cannot be used is reported to diags. The caller closes
// all of them.
func Recognize(inputs []Input, opt Options, diags *trace.Diags) []*Source {
	m := &Loaded{Spans: newSpans(diags, opt.KeepSecrets), Diags: diags, opt: opt}
	known := m.recognize(inputs)
	return slices.Concat(known.dumps, known.recordings, known.aside)
}

// Apart reads an input into tables of its own. The error says that nothing of it can be used.
func (x *Source) Apart(opt Options, diags *trace.Diags) (*Loaded, error) {
	m := newLoaded(opt, diags)
	m.Sources = []*Source{x}
	err := x.index(m.options(opt.Filter, 0))
	m.finishSeries()
	m.Spans.ReportOther()
	return m, err
}

// Files returns the paths of the files that an input consists of, sorted.
func (in Input) Files() (paths []string, err error) {
	info, err := os.Stat(in.Path())
	if err != nil || !info.IsDir() {
		return []string{in.Path()}, err
	}
	entries, err := os.ReadDir(in.Path())
	for _, name := range filesOf(in.Path(), entries) {
		paths = append(paths, filepath.Join(in.Path(), name))
	}
	return paths, err
}

// Close gives up an input.
func (x *Source) Close() error { return errors.Join(x.closeStream(), x.close()) }
