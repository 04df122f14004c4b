package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/tablefile"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A Content is what the reader of a format made of an input: what a capture stores.
type Content struct {
	Syms  *trace.Symbols
	Args  *trace.Args
	Diags *trace.Diags // about the input; walks add more
	// Spans are the spans of a dump; nil for a recording.
	Spans *spantable.Table
	// Source is a recording that was read with [format.Options.Walk], with all events and with [Arguments];
	// nil for a dump. Are has the ranks of its Profiles.
	Source *format.Source
	Are    [][]profile.Identity
	// Collectives are the profiles again, with collectives, of recordings that are walked.
	Collectives []*profile.Profile
	// Series are logs and metrics, and Flight are collectives that processes have in flight; nil without any.
	Series *series.Set
	Flight *recorder.InFlight
	// Pseudonyms replaces all text with pseudonyms; nil leaves it as it is. [About] is already redacted.
	Pseudonyms *redact.Maker

	noted diagLog
}

// Arguments selects the arguments of events that captures store.
var Arguments = profile.Filter{Args: profile.ArgsMin, ArgNames: []string{profile.ConcreteInputs}}

// Write writes the tables of a capture to a folder provided by Commit.
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
	names   []string // of symbols; there may be more by now
	json    encoder
	text    []byte
	files   []File // files written so far
	errs    []error
}

// name returns the text of a symbol.
func (w *writer) name(s trace.Sym) string {
	if int(s) >= len(w.names) {
		w.names = w.content.Syms.Names()
	}
	return w.names[s]
}

// A table is a table being written.
type table[T any] struct {
	*tablefile.Writer[T]
	of   *writer
	name string
}

// create starts a file of a table. Errors are kept for Write.
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

// lazy is a table whose file is created with its first row.
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

// rows returns the number of rows written.
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

// about writes the description of the capture.
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

// Bounds returns when the recording begins and ends; 0 is unknown.
func (c *Content) Bounds() (first, last trace.Time) {
	cover := func(from, to trace.Time) {
		first, last = order.Earlier(first, from), max(last, to)
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

// A diagKey identifies a diagnostic, as [trace.Diags] does.
type diagKey struct{ code, file string }

// A diagLog records in which reading of the input each diagnostic came up.
type diagLog struct {
	before map[diagKey]int // counts so far
	rows   []diagRow
}

// Readings of an input that may cause diagnostics, besides walks over its rows: indexing it, and listing its content
// with and without ranks and sizes.
const (
	DuringIndex   = "index"
	DuringInspect = "inspect"
	DuringList    = "list"
)

// Note records that the diagnostics since the last Note came up during a reading.
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

// A file holds the rows of one kind of a table, so that a report opens only the files that it needs.
type file struct {
	name      string
	kind      string // of its rows
	of        profile.SliceKind
	operators bool // in the table operators rather than slices
}

// Files of events.
var (
	kernelsFile   = &file{name: "slices-kernels", kind: "kernel", of: profile.KernelSlice}
	copiesFile    = &file{name: "slices-copies", kind: "copy", of: profile.CopySlice}
	callsFile     = &file{name: "slices-calls", kind: "call", of: profile.CallSlice}
	rangesFile    = &file{name: "slices-ranges", kind: "range", of: profile.RangeSlice}
	otherFile     = &file{name: "slices-other", kind: "other"}
	operatorsFile = &file{name: "operators-operators", kind: "operator", of: profile.OperatorSlice, operators: true}
	pythonFile    = &file{name: "operators-python", kind: "python", of: profile.PythonSlice, operators: true}
	systemFile    = &file{name: "operators-system", kind: "system", of: profile.SystemSlice, operators: true}
)

// eventFiles are the files of events, in reading order.
var eventFiles = []*file{kernelsFile, copiesFile, callsFile, rangesFile, operatorsFile, pythonFile, systemFile, otherFile}

// fileOf returns the file for events of a kind.
func fileOf(kind profile.SliceKind) *file {
	return eventFiles[slices.IndexFunc(eventFiles, func(f *file) bool { return f.of == kind })]
}

// wants reports whether a filter may keep events of the file.
func (f *file) wants(filter *profile.Filter) bool {
	return filter.Cats == nil || f == otherFile || slices.ContainsFunc(f.of.Categories(), filter.KeepsCategory)
}

// words are the texts of a column, by number.
type words []string

// number returns the number of a word, 0 if it is unknown.
func (w words) number(word []byte) int { return max(0, slices.Index(w, string(word))) }

var (
	rowKinds     = words{profile.RowThread: "thread", profile.RowStream: "stream", profile.RowAsync: "async", profile.RowCounter: "counter", profile.RowOther: "other"}
	stepKinds    = words{profile.StepOther: "other", profile.StepPrefill: "prefill", profile.StepDecode: "decode"}
	frameKinds   = words{profile.OperatorFrame: "operator", profile.PythonFrame: "python", profile.SystemFrame: "system"}
	counterKinds = words{profile.MemoryCounter: "memory", profile.DeviceCounter: "device", profile.NetworkCounter: "network"}
	rangeStyles  = words{profile.PushPop: profile.PushPop.String(), profile.StartEnd: profile.StartEnd.String()}
)

// StepKind returns the word for a kind of step in tables.
func StepKind(k profile.StepKind) string { return stepKinds[k] }

// KernelKind returns the kind of a kernel in tables.
func KernelKind(k *profile.Kernel) string {
	if k.Graph {
		return graphKind
	}
	return kernelsFile.kind
}

// Words for kinds of rows within one table.
const (
	graphKind       = "graph"
	sampleKind      = "sample"
	backtraceKind   = "backtrace"
	runKind         = "run"
	traceCounter    = "trace"       // a counter in a trace
	collectivesView = "collectives" // view of a process
)

// spans writes the spans of a dump.
func (w *writer) spans() {
	d := w.content.Spans
	if d == nil {
		return
	}
	w.resources()
	names := d.Syms.Names()
	spans, events, links := lazy[spanRow]{of: w, name: "spans-0"}, lazy[eventRow]{of: w, name: "events-0"}, lazy[linkRow]{of: w, name: "links-0"}
	attributes := func(id trace.ArgsID) string {
		w.text = w.json.attributes(w.text[:0], d.Args.All(id))
		return string(w.text)
	}
	for i := range d.Len() {
		s := d.Span(i)
		o := d.Origins[s.Origin]
		row := spanRow{Start: int64(s.Start), Dur: s.Dur(), TraceID: traceID(s.TraceHi, s.TraceLo), SpanID: s.ID, ParentID: s.Parent,
			Name: names[s.Name], Resource: int32(o.Resource), Scope: names[o.Scope], Status: int32(s.Status), Kind: int32(s.Kind),
			Line: int64(s.Line), Attributes: attributes(s.Args)}
		if s.Line == 0 {
			row.Offset = d.Pos(i).Offset
		}
		spans.write(row)
		for e := range d.Events(i) {
			events.write(eventRow{Span: int64(i), Time: int64(e.Time), Name: names[e.Name], Attributes: attributes(e.Args)})
		}
		for l := range d.Links(i) {
			links.write(linkRow{Span: int64(i), TraceID: traceID(l.TraceHi, l.TraceLo), SpanID: l.ID})
		}
	}
	spans.close()
	events.close()
	links.close()
}

// resources writes the processes that emitted spans; number 0 is the unknown process.
func (w *writer) resources() {
	d := w.content.Spans
	names := d.Syms.Names()
	l := lazy[resourceRow]{of: w, name: "resources-0"}
	for i, r := range d.Resources {
		if i > 0 {
			l.write(resourceRow{Resource: int32(i), Service: names[r.Service], Instance: names[r.Instance],
				Attributes: string(w.json.attributes(nil, d.Args.All(r.Args)))})
		}
	}
	l.close()
}

func traceID(hi, lo uint64) string { return fmt.Sprintf("%016x%016x", hi, lo) }
