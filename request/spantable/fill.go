package spantable

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A Filler puts the spans of one file into a table, for readers of formats that come span by
// span. What a table never holds, it keeps out: attributes that may hold secrets, and spans
// without identity or time.
type Filler struct {
	Table   *Table
	file    uint32
	secrets *redact.Filter // nil keeps them
	service trace.Sym
	inst    trace.Sym
	fields  FieldKeys
	// Of a filler that only looks: see [Outline.Fill].
	prescanned *PrescannedPiece
	keys       map[trace.Sym]int // of Prescan.Keys
}

// Fill begins a look at a file: what is filled goes to the outline, and no table. ended is to be
// called behind the last span.
func (o *Outline) Fill(name string) (f *Filler, ended func()) {
	table := New(&trace.Diags{}) // of what is read, nothing stays
	table.KeepSecrets = true
	f = table.Fill(name, "")
	f.prescanned, f.keys = o.Prescan.NewPiece(), map[trace.Sym]int{}
	for k, key := range o.Prescan.Keys {
		f.keys[table.Syms.Intern(key)] = k
	}
	return f, func() { o.Add(name, ByteRange{Documents: f.File().Documents}, f.prescanned) }
}

// Prescans reports whether nothing but the identity, the name, the times, and the attributes of
// spans is of interest.
func (f *Filler) Prescans() bool { return f.prescanned != nil }

// Leaves reports whether a span of a trace is left out, as nobody asks for it, and counts it
// then.
func (f *Filler) Leaves(hi, lo uint64) bool {
	if f.Table.Selected.Has(hi, lo) {
		return false
	}
	f.File().Spans++
	return true
}

// Fill begins a file; encoding is what reports call its form.
func (d *Table) Fill(name, encoding string) *Filler {
	f := &Filler{Table: d, file: uint32(len(d.Files)), service: d.Syms.Intern("service.name"), inst: d.Syms.Intern("service.instance.id"),
		fields: NewFieldKeys(d.Syms)}
	d.Files = append(d.Files, File{Name: name, Encoding: encoding})
	if !d.KeepSecrets {
		f.secrets = redact.NewFilter(d.Syms)
	}
	return f
}

// File returns the description of the file.
func (f *Filler) File() *File { return &f.Table.Files[f.file] }

// Tell reports a message about what stands at an offset.
func (f *Filler) Tell(m *trace.Message, offset int64, values ...any) {
	f.Table.Diags.Add(m.At(trace.Pos{File: f.File().Name, Offset: offset}, values...))
}

// Documents reads JSON documents to the end of the file, each by value, and reports damage:
// everything before it is used.
func (f *Filler) Documents(d *json.Decoder, value func() error) {
	var err error
	for err == nil {
		if err = value(); err == nil {
			f.File().Documents++
		}
	}
	if err != io.EOF {
		f.Tell(trace.InputDamaged, d.InputOffset(), err)
	}
	f.File().Bytes = d.InputOffset()
}

// A Record is a span as a format has it.
type Record struct {
	Span
	Scope    string
	Resource trace.ArgList
	Attrs    trace.ArgList
	Message  string // of the status
	Events   []Event
	Links    []Link
}

// ErrMissing says that a span has no identity, or no time.
var errMissing = errors.New("no trace id, span id, start or end")

// Add adds a span that stands at an offset of the file, or reports why not.
func (f *Filler) Add(r *Record, offset int64) {
	s := &r.Span
	if s.TraceHi|s.TraceLo == 0 || s.ID == 0 || s.Start <= 0 || s.End <= 0 {
		f.Tell(trace.OTLPInvalidSpan, offset, errMissing)
		return
	}
	if f.prescanned != nil {
		f.prescan(r)
		return
	}
	t := f.Table
	t.Frame(offset)
	var service, instance trace.Sym
	for a := range r.Resource.All {
		switch a.Key {
		case f.service:
			service = t.Syms.Intern(string(a.Bytes()))
		case f.inst:
			instance = t.Syms.Intern(string(a.Bytes()))
		}
	}
	s.Origin = t.Origin(Origin{File: f.file, Resource: t.ResourceOf(service, instance, r.Resource), Scope: t.Syms.Intern(r.Scope)})
	s.Args = t.Args.Put(f.fields.Append(r.Attrs, &Fields{Kind: s.Kind, Message: []byte(r.Message)}, f.secrets == nil))
	t.Add(s, r.Events, r.Links)
	f.File().Spans++
}

// prescan notes a span.
func (f *Filler) prescan(r *Record) {
	number := f.prescanned.Span(TraceID{r.TraceHi, r.TraceLo}, r.Start, r.End)
	if !f.prescanned.Name(number, []byte(f.Table.Syms.Name(r.Name))) {
		return
	}
	for a := range r.Attrs.All {
		if key, ok := f.keys[a.Key]; ok {
			f.prescanned.Attribute(number, key, a)
		}
	}
}

// Attribute appends an attribute that stands at an offset to a list: a string, an int64, a
// float64 or a bool.
func (f *Filler) Attribute(list trace.ArgList, key string, value any, offset int64) trace.ArgList {
	sym, start := f.Table.Syms.Intern(key), len(list)
	switch v := value.(type) {
	case string:
		list = list.String(sym, v)
	case int64:
		list = list.Int(sym, v)
	case float64:
		list = list.Float(sym, v)
	case bool:
		list = list.Bool(sym, v)
	}
	if f.secrets != nil && sym != 0 && len(list) > start && f.secrets.Holds(list[start:]) {
		f.Tell(trace.SecretLeftOut, offset, "attribute", f.secrets.Name(sym))
		return list[:start]
	}
	return list
}

// kinds are the kinds of spans by the words that formats other than OTLP have for them.
var kinds = []string{"", "internal", "server", "client", "producer", "consumer"}

// KindOf returns the kind that a word stands for; 0 is none.
func KindOf(word string) uint8 {
	for k, name := range kinds {
		if strings.EqualFold(name, word) {
			return uint8(k)
		}
	}
	return 0
}

// StatusOf returns the status that a word stands for.
func StatusOf(word string) SpanStatus {
	switch strings.ToUpper(word) {
	case "OK":
		return StatusOK
	case "ERROR":
		return StatusError
	}
	return StatusUnset
}

// ParseID reads an ID of up to 16 bytes, whose zeros in front may be missing; 0, 0 is none.
func ParseID(text string) (hi, lo uint64) {
	var b [16]byte
	if len(text) > 32 {
		return 0, 0
	}
	if _, err := hex.Decode(b[:], []byte(strings.Repeat("0", 32-len(text))+text)); err != nil {
		return 0, 0
	}
	for i := range 8 {
		hi, lo = hi<<8|uint64(b[i]), lo<<8|uint64(b[i+8])
	}
	return hi, lo
}

// ParseSpanID reads the ID of a span; 0 is none.
func ParseSpanID(text string) uint64 {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return id
}

// Micros returns a time or duration that is given in microseconds; 0 is one that cannot be.
func Micros(us int64) trace.Time {
	const most = int64(1<<63-1) / 1000
	if us < 0 || us > most {
		return 0
	}
	return trace.Time(us * 1000)
}
