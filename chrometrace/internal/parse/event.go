package parse

import (
	"encoding/binary"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// An event holds the members of the current event. Byte slices point into the input.
type event struct {
	at   int // offset of the opening brace in the input
	seen uint32
	ph   byte // 0 if it is missing, or not a single character

	name, cat               []byte
	nameEscaped, catEscaped bool
	pid, tid                []byte // as written; nil if missing
	ts                      trace.Time
	dur                     int64
	timed                   bool // ts is a time
	id                      []byte
	local, global           []byte // of id2
	enclosing               bool   // "bp":"e"
	bind                    []byte // of bind_id
	flowIn, flowOut         bool
	args                    int // index of the arguments, if they are to be read at the end

	nm       *name // for name and cat, once needed
	category *catEntry
}

// Members of events, as bits.
const (
	hasPh uint32 = 1 << iota
	hasCat
	hasName
	hasPid
	hasTid
	hasTs
	hasDur
	hasArgs
	hasID
	hasID2
	hasBp
	hasBind
	hasFlowIn
	hasFlowOut
)

// Keys of events with their quotes, as they lie in memory.
const (
	keyPh   = '"' | 'p'<<8 | 'h'<<16 | '"'<<24
	keyTs   = '"' | 't'<<8 | 's'<<16 | '"'<<24
	keyID   = '"' | 'i'<<8 | 'd'<<16 | '"'<<24
	keyBp   = '"' | 'b'<<8 | 'p'<<16 | '"'<<24
	keyCat  = '"' | 'c'<<8 | 'a'<<16 | 't'<<24 | '"'<<32
	keyPid  = '"' | 'p'<<8 | 'i'<<16 | 'd'<<24 | '"'<<32
	keyTid  = '"' | 't'<<8 | 'i'<<16 | 'd'<<24 | '"'<<32
	keyDur  = '"' | 'd'<<8 | 'u'<<16 | 'r'<<24 | '"'<<32
	keyID2  = '"' | 'i'<<8 | 'd'<<16 | '2'<<24 | '"'<<32
	keyName = '"' | 'n'<<8 | 'a'<<16 | 'm'<<24 | 'e'<<32 | '"'<<40
	keyArgs = '"' | 'a'<<8 | 'r'<<16 | 'g'<<24 | 's'<<32 | '"'<<40

	// What libkineto writes between members.
	nextSpaced = ',' | ' '<<8 | '"'<<16
	nextLine   = ',' | '\n'<<8 | ' '<<16 | ' '<<24 | ' '<<32 | ' '<<40 | '"'<<48

	of3 = 1<<24 - 1
	of4 = 1<<32 - 1
	of5 = 1<<40 - 1
	of6 = 1<<48 - 1
	of7 = 1<<56 - 1
)

// eventKey returns the key at the beginning of w, eight bytes of the input, and its length with the quotes; 0
// for other keys.
func eventKey(w uint64) (has uint32, n int) {
	switch byte(w >> 8) {
	case 'p':
		if w&of4 == keyPh {
			return hasPh, 4
		}
		if w&of5 == keyPid {
			return hasPid, 5
		}
	case 't':
		if w&of4 == keyTs {
			return hasTs, 4
		}
		if w&of5 == keyTid {
			return hasTid, 5
		}
	case 'n':
		if w&of6 == keyName {
			return hasName, 6
		}
	case 'c':
		if w&of5 == keyCat {
			return hasCat, 5
		}
	case 'd':
		if w&of5 == keyDur {
			return hasDur, 5
		}
	case 'a':
		if w&of6 == keyArgs {
			return hasArgs, 6
		}
	case 'i':
		if w&of4 == keyID {
			return hasID, 4
		}
		if w&of5 == keyID2 {
			return hasID2, 5
		}
	case 'b':
		if w&of4 == keyBp {
			return hasBp, 4
		}
	}
	return 0, 0
}

// event reads the event that begins at b[i], and returns where it ends. It records nothing yet.
func (p *parser) event(i int) (next int, err error) {
	b, ev := p.b, &p.ev
	*ev = event{at: i}
	p.notes, p.found = notes{}, 0
	p.list = p.list[:0]
	i++
	for first := true; ; first = false {
		var w uint64
		if i+8 <= len(b) {
			w = binary.LittleEndian.Uint64(b[i:])
		}
		if w&of3 == nextSpaced && !first {
			i += 2
		} else if w&of7 == nextLine && !first {
			i += 6
		} else if i, err = p.nextMember(i, first, '}'); err != nil {
			return i, err
		} else if b[i] == '}' {
			return i + 1, p.lateArguments()
		} else if b[i] != '"' {
			return i, errSyntax
		}
		var has uint32
		var n int
		if i+8 <= len(b) {
			has, n = eventKey(binary.LittleEndian.Uint64(b[i:]))
		}
		if has == 0 {
			if has, n, err = p.otherKey(i); err != nil {
				return i, err
			}
		}
		if i, err = p.colon(i + n); err != nil {
			return i, err
		}
		if ev.seen&has != 0 {
			return i, errRepeated
		}
		ev.seen |= has
		if i, err = p.member(i, has); err != nil {
			return i, err
		}
	}
}

// lateArguments reads arguments that came before the phase.
func (p *parser) lateArguments() error {
	if p.ev.args == 0 {
		return nil
	}
	before := p.notes // note nothing twice
	_, err := p.arguments(p.ev.args)
	p.notes = before
	return err
}

// nextMember moves to the next member or element, or to the closing bracket.
func (p *parser) nextMember(i int, first bool, closing byte) (next int, err error) {
	b, commas := p.b, 0
	for ; i < len(b); i++ {
		switch b[i] {
		case ' ', '\n', '\r', '\t':
			continue
		case ',':
			commas++
			continue
		case closing:
			if commas > 0 {
				p.notes.commas++
			}
			return i, nil
		}
		if commas == 1 && !first || commas == 0 && first {
			return i, nil
		}
		if commas == 0 && !p.careful {
			return i, errSyntax
		}
		if b[i] != '}' && b[i] != ']' {
			p.notes.commas++
		}
		return i, nil
	}
	return i, errShort
}

// colon moves past the colon to the value.
func (p *parser) colon(i int) (next int, err error) {
	b := p.b
	if i+2 < len(b) && b[i] == ':' && b[i+1] == ' ' && b[i+2] > ' ' {
		return i + 2, nil
	}
	if i = jsonscan.Space(b, i); i < len(b) && b[i] != ':' {
		return i, errSyntax
	}
	if i = jsonscan.Space(b, i+1); i >= len(b) {
		return i, errShort
	}
	return i, nil
}

// longKeys are rare keys. All others have at most four characters.
var longKeys = map[string]uint32{"bind_id": hasBind, "flow_in": hasFlowIn, "flow_out": hasFlowOut}

// otherKey reads the key at b[i] the slow way: it may be close to the end of b, have escapes, or be unknown.
func (p *parser) otherKey(i int) (has uint32, n int, err error) {
	raw, escaped, next, err := p.str(i, inKey)
	if err != nil {
		return 0, 0, err
	}
	if escaped {
		raw = p.unescape(nil, raw)
	}
	if len(raw) > 4 {
		return longKeys[string(raw)], next - i, nil
	}
	var w [8]byte
	w[0], w[1+copy(w[1:], raw)] = '"', '"'
	has, _ = eventKey(binary.LittleEndian.Uint64(w[:]))
	return has, next - i, nil
}

// member reads the value at b[i].
func (p *parser) member(i int, has uint32) (next int, err error) {
	b, ev := p.b, &p.ev
	switch has {
	case hasPh:
		if i+2 < len(b) && b[i] == '"' && b[i+2] == '"' && b[i+1] != '\\' && b[i+1] != '"' {
			ev.ph = b[i+1]
			return i + 3, nil
		}
		if b[i] == '"' {
			raw, _, next, err := p.str(i, inEvent)
			if text := p.unescape(nil, raw); len(text) == 1 {
				ev.ph = text[0]
			}
			return next, err
		}
	case hasCat:
		if b[i] == '"' {
			ev.cat, ev.catEscaped, next, err = p.str(i, inEvent)
			return next, err
		}
	case hasName:
		if b[i] == '"' {
			ev.name, ev.nameEscaped, next, err = p.str(i, inName)
			return next, err
		}
	case hasPid:
		ev.pid, next, err = p.written(i)
		return next, err
	case hasTid:
		ev.tid, next, err = p.written(i)
		return next, err
	case hasTs:
		ns, next, ok, err := p.time(i)
		ev.ts, ev.timed = trace.Time(ns), ok
		return next, err
	case hasDur:
		ns, next, _, err := p.time(i)
		ev.dur = ns
		return next, err
	case hasArgs:
		if b[i] == '{' && ev.seen&hasPh == 0 {
			ev.args = i // the phase determines which of them are needed
		} else if b[i] == '{' {
			return p.arguments(i)
		}
	case hasID:
		ev.id, next, err = p.written(i)
		return next, err
	case hasID2:
		if b[i] == '{' {
			return p.id2(i)
		}
	case hasBp:
		if b[i] == '"' {
			raw, _, next, err := p.str(i, inEvent)
			ev.enclosing = string(raw) == "e"
			return next, err
		}
	case hasBind:
		ev.bind, next, err = p.written(i)
		return next, err
	case hasFlowIn:
		ev.flowIn, next, err = p.truth(i)
		return next, err
	case hasFlowOut:
		ev.flowOut, next, err = p.truth(i)
		return next, err
	}
	return p.skip(i, inEvent)
}

// written returns the value at b[i] as it is written, a string with its quotes; null yields nil.
func (p *parser) written(i int) (raw []byte, next int, err error) {
	b := p.b
	next = i
	for next < len(b) && b[next]-'0' <= 9 {
		next++
	}
	if next == i || next == len(b) || b[next] != ',' && b[next] != '}' {
		if next, err = p.skip(i, inEvent); err != nil {
			return nil, next, err
		}
	}
	if raw = b[i:next]; string(raw) == "null" {
		raw = nil
	}
	return raw, next, nil
}

// truth reports whether the value at b[i] is truthy, as in JavaScript.
func (p *parser) truth(i int) (truth bool, next int, err error) {
	raw, next, err := p.written(i)
	switch string(raw) {
	case "", "false", "0", `""`:
		return false, next, err
	}
	return true, next, err
}

// time reads the time at b[i], a number or a string. ok is false if it is
// neither.
func (p *parser) time(i int) (ns int64, next int, ok bool, err error) {
	b := p.b
	ns, next, ok = micros(b, i)
	if next == len(b) {
		return 0, next, false, errShort
	}
	if ok {
		return ns, next, true, nil
	}
	quoted := b[i] == '"' // quoted by Ascend, and by SGLang's older converter
	start := i
	if next, err = p.skip(i, inEvent); err != nil {
		return 0, next, false, err
	}
	if quoted {
		text := b[start+1 : next-1]
		var end int
		ns, end, ok = micros(text, 0)
		ok = ok && end == len(text)
	}
	if !ok {
		ns = 0
	}
	return ns, next, ok, nil
}

// id2 reads the object at b[i]: {"local": "0x1"} or {"global": "0x1"}.
func (p *parser) id2(i int) (next int, err error) {
	end, err := p.skip(i, inEvent)
	if err != nil {
		return end, err
	}
	for key, value := range flatMembers(p.b[i:end]) {
		switch key {
		case "local":
			p.ev.local = value
		case "global":
			p.ev.global = value
		}
	}
	return end, nil
}

// anyID returns the id of the event as it is written, and whether it is valid in all processes.
func (ev *event) anyID() (raw []byte, global bool) {
	switch {
	case ev.local != nil:
		return ev.local, false
	case ev.global != nil:
		return ev.global, true
	}
	return ev.id, false
}

// flatMembers yields the members of a valid object, as they are written.
func flatMembers(object []byte) func(yield func(key string, value []byte) bool) {
	return func(yield func(key string, value []byte) bool) {
		i := 1
		for {
			for i < len(object) && object[i] != '"' {
				i++
			}
			key, escaped, next, err := jsonscan.String(object, i)
			if err != nil {
				return
			}
			if escaped {
				key = jsonscan.Unescape(nil, key)
			}
			if next = jsonscan.Space(object, next); next >= len(object) || object[next] != ':' {
				return
			}
			start := jsonscan.Space(object, next+1)
			if i, err = jsonscan.Value(object, start); err != nil || !yield(string(key), object[start:i]) {
				return
			}
		}
	}
}
