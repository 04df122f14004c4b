package dataset

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/tablefile"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A Content is what the reader of a format made of an input: what a capture keeps.
type Content struct {
	Syms  *trace.Symbols
	Args  *trace.Args
	Diags *trace.Diags // about the input; walks add to it
	// Spans are those of a dump; nil for a recording.
	Spans *spantable.Table
	// Source is a recording that was read with [format.Options.Walk], with all events and with
	// [Arguments]; its Profiles have the ranks that Are names; nil for a dump.
	Source *format.Source
	Are    [][]profile.Identity
	// Collectives are the profiles once more, with the collectives, of recordings that are walked.
	Collectives []*profile.Profile
	// Series holds the data of logs and metrics, and Flight the collectives that processes have in flight; nil is nothing.
	Series *series.Set
	Flight *recorder.InFlight
	// Pseudonyms are given to all texts; nil leaves them as they are. What [About] says already
	// has them.
	Pseudonyms *redact.Maker

	noted diagLog
}

// Arguments are those of events that captures keep.
var Arguments = profile.Filter{Args: profile.ArgsMin, ArgNames: []string{profile.ConcreteInputs}}

// Write writes the tables of a capture to a folder that Commit gives.
func Write(dir string, a *About, c *Content) error {
	w := &writer{dir: dir, content: c}
	w.json = encoder{w.name, c.Pseudonyms}
	if c.Pseudonyms != nil {
		c.learn()
	}
	w.spans()
	w.writeSeries()
	w.entered()
	w.recorded()
	w.walked()
	w.diagnostics()
	w.about(a)
	return errors.Join(w.errs...)
}

// A writer writes the tables of a capture.
type writer struct {
	dir     string
	content *Content
	names   []string // of symbols; there may be more meanwhile
	json    encoder
	text    []byte
	files   []File // that were written
	errs    []error
}

// name returns the text of a symbol.
func (w *writer) name(s trace.Sym) string {
	if int(s) >= len(w.names) {
		w.names = w.content.Syms.Names()
	}
	return w.names[s]
}

// A table is one that a writer has under way.
type table[T any] struct {
	*tablefile.Writer[T]
	of   *writer
	name string
}

// create begins a file of a table. What goes wrong is kept for Write.
func create[T any](w *writer, name string) table[T] { return createAbout[T](w, name, nil) }

func createAbout[T any](w *writer, name string, about map[string]string) table[T] {
	t, err := tablefile.CreateParquet[T](filepath.Join(w.dir, name+tablefile.ParquetSuffix), withVersion(about))
	if err != nil {
		w.errs = append(w.errs, err)
	}
	return table[T]{t, w, name + tablefile.ParquetSuffix}
}

func withVersion(about map[string]string) map[string]string {
	all := map[string]string{versionKey: Version}
	maps.Copy(all, about)
	return all
}

func (t table[T]) write(row T) {
	if t.Writer != nil {
		t.Writer.Write(row)
	}
}

func (t table[T]) close() {
	if t.Writer == nil {
		return
	}
	err := t.Writer.Close()
	hash, _, hashErr := HashFiles(filepath.Join(t.of.dir, t.name))
	t.of.errs = append(t.of.errs, err, hashErr)
	t.of.files = append(t.of.files, File{t.name, t.Writer.Rows(), hash})
}

// lazy is a table of which nothing is written before its first row.
type lazy[T any] struct {
	of   *writer
	name string
	to   *table[T]
}

func (l *lazy[T]) write(row T) {
	if l.to == nil {
		t := create[T](l.of, l.name)
		l.to = &t
	}
	if m := l.of.content.Pseudonyms; m != nil {
		named := row // a copy, so that only rows with pseudonyms move to the heap
		m.Row(&named)
		row = named
	}
	l.to.write(row)
}

// rows returns how many rows were written.
func (l *lazy[T]) rows() int64 {
	if l.to == nil || l.to.Writer == nil {
		return 0
	}
	return l.to.Writer.Rows()
}

func (l *lazy[T]) close() {
	if l.to != nil {
		l.to.close()
	}
}

// about writes what the capture is of.
func (w *writer) about(a *About) {
	a.Files = w.files
	a.First, a.Last = w.content.Bounds()
	if m := w.content.Pseudonyms; m != nil {
		w.errs = append(w.errs, a.redactRest(m))
	}
	text, err := json.Marshal(a)
	w.errs = append(w.errs, err)
	t := createAbout[inputRow](w, "inputs-0", map[string]string{aboutKey: string(text)})
	row := inputRow{Name: a.Name, Path: a.Path, Label: a.Label, Format: a.Format, Hash: a.Hash, Bytes: a.Bytes, Folder: a.Folder, Tool: a.Tool, Unusable: a.Unusable}
	if w.content.Spans != nil {
		for _, f := range w.content.Spans.Files {
			row.Encoding, row.Content, row.Documents, row.Spans, row.Other = f.Encoding, f.Bytes, int64(f.Documents), int64(f.Spans), int64(f.Other)
		}
	}
	t.write(row)
	t.close()
}

// Bounds returns when what was recorded begins and ends; 0 is unknown.
func (c *Content) Bounds() (first, last trace.Time) {
	cover := func(from, to trace.Time) {
		if first == 0 || from < first {
			first = from
		}
		last = max(last, to)
	}
	if d := c.Spans; d != nil {
		for i := range d.Len() {
			cover(d.Span(i).Start, d.Span(i).End)
		}
	}
	if c.Source != nil {
		for _, p := range c.Source.Profiles {
			if p.Meta.Origin == profile.OriginUnix && p.Total > 0 {
				cover(p.First, p.Last)
			}
		}
	}
	return first, last
}

// A diagKey tells diagnostics apart, as [trace.Diags] does.
type diagKey struct{ code, file string }

// A diagLog holds which diagnostics came up in which reading of the input.
type diagLog struct {
	before map[diagKey]int // counts
	rows   []diagRow
}

// Readings of an input that diagnostics may come up in, beside walks over its rows: when it is indexed, and when what it holds is
// listed, with and without ranks and sizes.
const (
	DuringIndex   = "index"
	DuringInspect = "inspect"
	DuringList    = "list"
)

// Note notes that the diagnostics since the last Note came up during a reading.
func (c *Content) Note(during string) {
	if c.noted.before == nil {
		c.noted.before = map[diagKey]int{}
	}
	for _, d := range c.Diags.All() {
		key := diagKey{d.Code, d.Pos.File}
		more := d.Count - c.noted.before[key]
		if more == 0 {
			continue
		}
		c.noted.before[key] = d.Count
		c.noted.rows = append(c.noted.rows, diagRow{During: during, Code: d.Code, Severity: int32(d.Severity), Text: d.Msg,
			File: d.Pos.File, Line: d.Pos.Line, Offset: d.Pos.Offset, Count: int64(more)})
	}
}

func (w *writer) diagnostics() {
	l := lazy[diagRow]{of: w, name: "diagnostics-0"}
	for _, row := range w.content.noted.rows {
		l.write(row)
	}
	l.close()
}
