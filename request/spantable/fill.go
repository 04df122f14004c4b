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

// A Filler adds the spans of one file to a table, for formats that are read span by span. It drops what a
// table never holds: attributes that may hold secrets, and spans without identity or time.
type Filler struct {
	Table   *Table
	file    uint32
	secrets *redact.Filter // nil keeps secrets
	service trace.Sym
	inst    trace.Sym
	fields  FieldKeys
	// prescanned is set for a filler that only scans: see [Outline.Fill].
	prescanned *PrescannedPiece
	keys       map[trace.Sym]int // index of Prescan.Keys
}

// Fill starts a scan of a file: the filler fills the outline rather than a table. Call ended after the last
// span.
func (o *Outline) Fill(name string) (f *Filler, ended func()) {
	table := New(&trace.Diags{}) // nothing that is read is kept
	table.KeepSecrets = true
	f = table.Fill(name, "")
	f.prescanned, f.keys = o.Prescan.NewPiece(), map[trace.Sym]int{}
	for k, key := range o.Prescan.Keys {
		f.keys[table.Syms.Intern(key)] = k
	}
	return f, func() { o.Add(name, ByteRange{Documents: f.File().Documents}, f.prescanned) }
}

// Prescans reports whether only the identity, name, times, and attributes of spans are needed.
func (f *Filler) Prescans() bool { return f.prescanned != nil }

// Leaves reports whether to skip a span because its trace is not selected, and counts the span if so.
func (f *Filler) Leaves(hi, lo uint64) bool {
	if f.Table.Selected.Has(hi, lo) {
		return false
	}
	f.File().Spans++
	return true
}

// Fill starts a file; encoding is its name in reports.
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

// Tell reports a message about the data at an offset.
func (f *Filler) Tell(m *trace.Message, offset int64, values ...any) {
	f.Table.Diags.Add(m.At(trace.Pos{File: f.File().Name, Offset: offset}, values...))
}

// Documents reads JSON documents to the end of the file, each by calling value. It reports damage;
// everything before the damage is used.
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

// A Record is a span in a format.
type Record struct {
	Span
	Scope    string
	Resource trace.ArgList
	Attrs    trace.ArgList
	Message  string // of the status
	Events   []Event
	Links    []Link
}

// errMissing is the error of a span without an identity or a time.
var errMissing = errors.New("no trace id, span id, start or end")

// Add adds the span at an offset of the file, or reports why it can't.
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

// prescan scans a span.
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

// Attribute appends an attribute, located at an offset of the file, to a list: a string, int64, float64, or
// bool.
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

// kinds are the words for kinds of spans in formats other than OTLP.
var kinds = []string{"", "internal", "server", "client", "producer", "consumer"}

// KindOf returns the kind for a word; 0 is none.
func KindOf(word string) uint8 {
	for k, name := range kinds {
		if strings.EqualFold(name, word) {
			return uint8(k)
		}
	}
	return 0
}

// StatusOf returns the status for a word.
func StatusOf(word string) SpanStatus {
	switch strings.ToUpper(word) {
	case "OK":
		return StatusOK
	case "ERROR":
		return StatusError
	}
	return StatusUnset
}

// ParseID parses an ID of up to 16 bytes in hex, whose leading zeros may be missing; 0, 0 is invalid.
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

// ParseSpanID parses the ID of a span; 0 is invalid.
func ParseSpanID(text string) uint64 {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return id
}

// Micros converts a time or duration from microseconds; an impossible one becomes 0.
func Micros(us int64) trace.Time {
	const most = int64(1<<63-1) / 1000
	if us < 0 || us > most {
		return 0
	}
	return trace.Time(us * 1000)
}
