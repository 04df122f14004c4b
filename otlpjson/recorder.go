package otlpjson

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A recorder writes records into a batch; the JSON and the protobuf parser
// share it.
type recorder struct {
	out             *batch
	cache           *trace.SymbolCache
	keys            wellKnown
	notes           notes            // on the current record
	list, eventList trace.ArgList    // scratch
	linkList        trace.ArgList    // scratch
	text0           []byte           // scratch
	fields          spantable.Fields // of the current span
	secrets         *redact.Filter   // nil keeps secrets
	memo            memo
	lastHex         [traceDigits]byte // the last trace ID seen, as written
	lastTrace       spantable.TraceID
	chosen          *spantable.Selected
	keeps           bool // whether to keep logs and metrics
}

// wellKnown are the symbols that the readers look for.
type wellKnown struct {
	service, instance trace.Sym
	fields            spantable.FieldKeys
}

// notes are the oddities that a reader finds in a record. They become diagnostics when the record is complete.
type notes struct {
	bad        error  // the record is lost
	lost       int    // values and events left out
	odd        int    // attributes kept as text
	unknown    int    // keys unknown to every version of OTLP
	unknownKey string // the first of them
	secrets    int    // attributes left out as possible secrets
	secretKey  string // the first of them
}

func newRecorder(syms *trace.Symbols, keepSecrets bool) recorder {
	r := recorder{cache: trace.NewSymbolCache(syms), memo: newMemo(), keys: wellKnown{
		service:  syms.Intern("service.name"),
		instance: syms.Intern("service.instance.id"),
		fields:   spantable.NewFieldKeys(syms),
	}}
	copy(r.lastHex[:], strings.Repeat("0", traceDigits))
	if !keepSecrets {
		r.secrets = redact.NewFilter(syms)
	}
	return r
}

// fail notes why the record cannot be used.
func (r *recorder) fail(err error) {
	if r.notes.bad == nil {
		r.notes.bad = err
	}
}

// noteUnknown notes an unknown key.
func (r *recorder) noteUnknown(key string) {
	if r.notes.unknown == 0 {
		r.notes.unknownKey = key
	}
	r.notes.unknown++
}

// settle reports the notes on a record that is kept.
func (r *recorder) settle(at place) {
	n := &r.notes
	if n.bad != nil {
		n.lost++
	}
	if n.lost|n.odd|n.unknown|n.secrets == 0 {
		return
	}
	if n.lost > 0 {
		r.report(trace.OTLPLostValue, at, n.lost)
	}
	if n.odd > 0 {
		r.report(trace.OTLPOddValue, at, n.odd)
	}
	if n.unknown > 0 {
		r.report(trace.OTLPUnknownKey, at, n.unknown, n.unknownKey)
	}
	if n.secrets > 0 {
		r.report(trace.SecretLeftOut, at, n.secrets, "attribute", n.secretKey)
	}
	*n = notes{}
}

// hidden removes the attribute that begins at list[start:] from a list if it may hold a secret.
func (r *recorder) hidden(list trace.ArgList, start int, key trace.Sym) trace.ArgList {
	if r.secrets == nil || len(list) == start || key == 0 || !r.secrets.Holds(list[start:]) {
		return list
	}
	if r.notes.secrets == 0 {
		r.notes.secretKey = r.secrets.Name(key)
	}
	r.notes.secrets++
	return list[:start]
}

// beginFields clears the fields of the previous span.
func (r *recorder) beginFields() {
	f := &r.fields
	*f = spantable.Fields{TraceState: f.TraceState[:0], Message: f.Message[:0], Links: f.Links[:0]}
}

// putArgs stores the attributes of a span, including the fields that are turned into attributes.
func (r *recorder) putArgs(s *batchSpan, list trace.ArgList) {
	r.fields.Kind = s.Span.Kind
	r.list = r.keys.fields.Append(list, &r.fields, r.secrets == nil)
	s.Span.Args = r.out.putArgs(r.list)
}

// addLink stores a link with its attributes.
func (r *recorder) addLink(l spantable.Link, attributes trace.ArgList) {
	r.fields.Links = r.keys.fields.Link(r.fields.Links, &l, attributes)
	r.out.links = append(r.out.links, l)
}

// addSpan stores a span, or undoes it if its notes require that.
func (r *recorder) addSpan(s *batchSpan, undo mark, at place) {
	if s.Span.TraceHi|s.Span.TraceLo == 0 || s.Span.ID == 0 || s.Span.Start <= 0 || s.Span.End <= 0 {
		r.fail(errMissing)
	}
	if r.notes.bad != nil {
		r.report(trace.OTLPInvalidSpan, at, 1, r.notes.bad)
		r.out.undo(undo)
		r.notes = notes{}
		return
	}
	if !r.chosen.Has(s.Span.TraceHi, s.Span.TraceLo) {
		r.out.left++
		r.out.undo(undo)
		r.notes = notes{}
		return
	}
	r.out.spans = append(r.out.spans, *s)
	r.settle(at)
}

// addResource stores a resource, replacing the one with the 1-based index before unless that is 0, and returns
// its index.
func (r *recorder) addResource(args trace.ArgList, before int) int {
	res := batchResource{args: args}
	for a := range args.All {
		switch a.Key {
		case r.keys.service:
			res.service = r.cache.Intern(a.Bytes())
		case r.keys.instance:
			res.instance = r.cache.Intern(a.Bytes())
		}
	}
	if before == 0 {
		r.out.resources = append(r.out.resources, res)
		return len(r.out.resources)
	}
	r.out.resources[before-1] = res
	return before
}

// report counts a message. Like trace.Diags, it merges repeated diagnostics of the batch: damage may be all
// that a batch has.
func (r *recorder) report(m *trace.Message, at place, count int, values ...any) {
	msg := m.Says(values...)
	for i := range r.out.diags {
		d := &r.out.diags[i]
		if d.message != m {
			continue
		}
		d.count += count
		if c := at.compare(d.at); c < 0 || c == 0 && msg < d.msg {
			d.at, d.msg = at, msg
		}
		return
	}
	r.out.diags = append(r.out.diags, batchDiag{m, at, msg, count})
}

// A memo remembers attributes by their JSON text. Most spans describe their process in the same words, so
// reading, interning, and checking them for secrets once is enough.
type memo struct {
	seed  maphash.Seed
	slots []remembered
	last  *remembered // the previous attribute
}

// remembered is an attribute as in the file, and as a list of arguments.
type remembered struct {
	text []byte
	list trace.ArgList
	next *remembered // the attribute that followed last time, and often follows again
}

// A memo has room for all that the processes of a large service report about themselves, so that replacements
// are rare. Long attributes are prompts, which differ.
const (
	memoSlots    = 1 << 10
	longestInOne = 256 // bytes
)

func newMemo() memo {
	return memo{seed: maphash.MakeSeed(), slots: make([]remembered, memoSlots), last: &remembered{}}
}

// slot returns the slot of the attribute at b[i], which may hold a different attribute, and where the attribute
// ends; nil if its end is not obvious.
func (m *memo) slot(b []byte, i int) (at *remembered, end int) {
	text := b[i:min(len(b), i+longestInOne)]
	end = bytes.IndexByte(text, '}') + 1
	if end == 0 || end == len(text) || text[end] != '}' {
		return nil, 0
	}
	end++
	return &m.slots[maphash.Bytes(m.seed, text[:end])%memoSlots], i + end
}

// follows returns the remembered attribute at b[i] if it is the one that followed the previous attribute last
// time, which saves the lookup; nil otherwise.
func (m *memo) follows(b []byte, i int) *remembered {
	next := m.last.next
	if next == nil || len(next.text) == 0 || !bytes.HasPrefix(b[i:], next.text) {
		return nil
	}
	m.last = next
	return next
}

// attribute reads the attribute at b[i] and appends it to list.
func (r *recorder) attribute(b []byte, i int, list *trace.ArgList) (next int, err error) {
	if at := r.memo.follows(b, i); at != nil {
		*list = append(*list, at.list...)
		return i + len(at.text), nil
	}
	at, end := r.memo.slot(b, i)
	if at != nil {
		r.memo.last.next, r.memo.last = at, at
		if string(at.text) == string(b[i:end]) {
			*list = append(*list, at.list...)
			return end, nil
		}
	}
	start, notes := len(*list), r.notes
	if next = r.usualKeyValue(b, i, list); next == 0 {
		next, err = r.keyValue(b, i, list, 0)
	}
	if at != nil && err == nil && next == end && r.notes == notes {
		at.text, at.list = append(at.text[:0], b[i:end]...), append(at.list[:0], (*list)[start:]...)
	}
	return next, err
}
