package parse

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// A level is a parser's position in the structure of a document.
type level uint8

const (
	atTop      level = iota // outside of all documents
	inObject                // between members of a document
	inEvents                // between events
	behindList              // after the events of a document or of a bare list
	atLoss                  // in skipped input
)

// A state is all that a parser needs to know about the input before.
type state struct {
	level level
	comma bool  // in inEvents: an event may begin
	loss  loss  // in atLoss
	clock int64 // base of relative times in ns, if the filter needs it
}

// to moves to a level.
func (st *state) to(l level) {
	st.level, st.comma, st.loss = l, l == inEvents, loss{}
}

var bom = []byte("\xef\xbb\xbf")

// run reads b, which begins at offset in the input, and returns how much of it was used, and the state there.
// The rest needs the bytes after b. It stops, with again set, before a second document, which needs a batch of
// its own.
func (p *parser) run(b []byte, offset int64, final bool, st state) (used int, end state, again bool) {
	p.b, p.base, p.final, p.clock = b, offset, final, st.clock
	p.rows.batch++
	for i, moved := 0, false; ; {
		if i = jsonscan.Space(b, i); i == len(b) {
			if st.level == atLoss && final {
				p.findNext(i, &st)
			}
			return i, st, false
		}
		next, err := i, error(nil)
		switch st.level {
		case atTop:
			if (b[i] == '{' || b[i] == '[') && moved {
				return i, st, true
			}
			next, err = p.top(i, &st)
		case inObject:
			next, err = p.documentMember(i, &st)
		case inEvents:
			next, err = p.element(i, &st)
		case behindList:
			next, err = p.behindEvents(i, &st)
		case atLoss:
			next, err = p.findNext(i, &st)
		}
		if err != nil { // errShort
			return next, st, false
		}
		moved = moved || st.level != atTop
		i = next
	}
}

// top reads the beginning of a document.
func (p *parser) top(i int, st *state) (next int, err error) {
	b := p.b
	switch b[i] {
	case '[':
		p.begin(st, false)
		st.to(inEvents)
		return i + 1, nil
	case '{':
		isEvent, err := p.eventAt(i)
		switch {
		case err != nil:
			return i, err
		case isEvent: // the beginning of the file is missing, or it never had one
			st.to(inEvents)
			return i, nil
		}
		p.begin(st, true)
		st.to(inObject)
		return i + 1, nil
	case bom[0]:
		if len(b)-i < len(bom) && !p.final {
			return i, errShort
		}
		if bytes.HasPrefix(b[i:], bom) {
			return i + len(bom), nil
		}
	}
	p.lose(st, i, errSyntax)
	return i, nil
}

// begin begins a document.
func (p *parser) begin(st *state, object bool) {
	p.out.NewDoc, p.out.Object = true, object
	p.setClock(st, p.opt.Base)
}

// setClock sets the origin of relative times, if the filter needs it.
func (p *parser) setClock(st *state, base int64) {
	if p.timed {
		p.clock, st.clock = base, base
	}
}

// documentMember reads the next thing between the braces of a document.
func (p *parser) documentMember(i int, st *state) (next int, err error) {
	switch p.b[i] {
	case ',':
		return i + 1, nil
	case '}':
		st.to(atTop)
		return i + 1, nil
	case '"':
		return p.keyAndValue(i, st)
	case '{':
		isEvent, err := p.eventAt(i)
		if isEvent {
			p.reopen(st, i)
		}
		if isEvent || err != nil {
			return i, err
		}
	}
	p.lose(st, i, errSyntax)
	return i, nil
}

// keyAndValue reads a member of a document, up to its list of events.
func (p *parser) keyAndValue(i int, st *state) (next int, err error) {
	b := p.b
	raw, escaped, at, err := jsonscan.String(b, i)
	if err == nil {
		at, err = p.colon(at)
	}
	if escaped {
		raw = jsonscan.Unescape(nil, raw)
	}
	key := string(raw)
	if err == nil && key == "traceEvents" {
		p.out.Chrome = true
		if b[at] == '[' {
			st.to(inEvents)
			return at + 1, nil
		}
	}
	if err == nil {
		next, err = jsonscan.Value(b, at)
	}
	if err == errShort && !p.final && len(b)-i <= p.Record {
		return i, errShort
	}
	if err != nil || next-i > p.Record {
		p.lose(st, i, errSyntax)
		return i, nil
	}
	value := b[at:next]
	if value[0] == '{' || value[0] == '[' {
		inside, err := p.eventIn(at, next)
		if err != nil {
			return i, err
		}
		if inside { // reading goes on where the value was cut off, or in the list under a damaged key
			p.lose(st, i, errInside)
			return i, nil
		}
	}
	if isKept(key, value) {
		if base, ok := BaseOf(key, value); ok {
			p.setClock(st, base)
		}
		p.out.Header = append(p.out.Header, Member{key, bytes.Clone(value), p.base + int64(at)})
	}
	return next, nil
}

// isKept reports whether to keep a member of a document: known lists and objects, and all other values.
func isKept(key string, value []byte) bool {
	return headerKeys[key] || value[0] != '{' && value[0] != '['
}

// behindEvents reads what follows a list of events: more members of a document, or the next document if it was
// a bare list.
func (p *parser) behindEvents(i int, st *state) (next int, err error) {
	switch p.b[i] {
	case '{':
		isEvent, err := p.eventAt(i)
		switch {
		case err != nil:
			return i, err
		case isEvent:
			p.reopen(st, i)
		default:
			st.to(atTop)
		}
	case '[':
		st.to(atTop)
	default:
		st.to(inObject)
	}
	return i, nil
}

// reopen continues with events although their list was closed.
func (p *parser) reopen(st *state, i int) {
	p.out.Report(trace.TraceEarlyEnd, p.base+int64(i), 1)
	st.to(inEvents)
}

// element reads the next thing in a list of events.
func (p *parser) element(i int, st *state) (next int, err error) {
	b := p.b
	switch b[i] {
	case '{':
		return p.eventElement(i, st)
	case ',':
		st.comma = true
		return i + 1, nil
	case ']':
		st.to(behindList)
		return i + 1, nil
	case '"':
		// The list may not have been closed.
		isKey, err := p.keyAt(i, isTopKey)
		if err != nil {
			return i, err
		}
		if isKey {
			st.to(inObject)
			return i, nil
		}
	}
	p.careful, p.notes = false, notes{}
	next, err = p.skip(i, inList)
	if err == nil && next > i && next-i <= p.Record && p.notes == (notes{}) {
		j := jsonscan.Space(b, next)
		if j >= len(b) && !p.final {
			return i, errShort
		}
		inside, err := p.eventIn(i, next)
		if err != nil {
			return i, err
		}
		if j < len(b) && (b[j] == ',' || b[j] == ']') && !inside {
			p.out.Report(trace.TraceNotAnEvent, p.base+int64(i), 1)
			st.comma = false
			return next, nil
		}
	}
	if err == errShort && !p.final && len(b)-i <= p.Record {
		return i, errShort
	}
	p.lose(st, i, errSyntax)
	return i, nil
}

// eventElement reads the event at b[i], in careful mode if need be.
func (p *parser) eventElement(i int, st *state) (next int, err error) {
	p.careful = false
	next, err = p.event(i)
	if err != nil && err != errShort {
		p.careful = true
		next, err = p.event(i)
	}
	switch {
	case err == errShort && !p.final && len(p.b)-i <= p.Record:
		return i, errShort
	case err == nil && next-i > p.Record || err == errShort && len(p.b)-i > p.Record:
		err = errTooLong
	}
	if err == nil && p.ev.ph == 0 {
		inside, tooShort := p.eventIn(i, next)
		if tooShort != nil {
			return i, tooShort
		}
		if inside {
			err = errInside
		}
	}
	if err != nil {
		p.lose(st, i, err)
		return i, nil
	}
	if !st.comma {
		p.notes.commas++
	}
	st.comma = false
	p.finish()
	return next, nil
}

// headerKeys are the lists and objects outside of the events that are read.
var headerKeys = map[string]bool{
	"distributedInfo": true, "deviceProperties": true, "metadata": true,
	"computeProperties": true, // the name of deviceProperties until May 2021
}

// BaseOf returns the base time in a member of a document.
func BaseOf(key string, value []byte) (ns int64, ok bool) {
	if key == "baseTimeNanoseconds" {
		ns, ok = jsonscan.Int(Unquoted(value))
	}
	return ns, ok && IsTime(trace.Time(ns))
}
