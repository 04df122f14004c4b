package parse

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// notes are the repairs in the current event. They become diagnostics when the event is complete.
type notes struct {
	commas  int       // missing or superfluous
	missing int       // values
	bare    int       // values that are not JSON, kept as text
	lists   int       // not closed
	quotes  int       // unescaped inside of a string
	secrets int       // arguments that may hold one, left out
	secret  trace.Sym // key of the first of them
}

// An argKey is a key of arguments.
type argKey struct {
	text   string // as written, with the quote and the colon after it
	sym    trace.Sym
	role   argRole
	min    bool              // ArgsMin keeps it
	secret redact.SecretTest // for its values; nil if they are harmless
	seen   uint64            // the last argument list with it; always, if several keys may share it
	next   *argKey           // the key that followed it last time
	before *argKey           // the key that followed it before that
}

// always is later than all argument lists.
const always = math.MaxUint64

// An argValue is a value that the reader itself needs, as written.
type argValue struct{ raw []byte }

// arguments reads the object at b[i]. It encodes the arguments to p.list if they are kept, and records the
// values that have a role. Of a repeated key, the last value counts.
func (p *parser) arguments(i int) (next int, err error) {
	encode := p.keepsArgs()
	all := p.opt.Filter.Args == profile.ArgsAll || p.ev.ph == 'C'
	b := p.b
	cat := p.categoryOf(&p.ev)
	key := &cat.first
	repeated := false
	p.lists++
	i++
	for first := true; ; first = false {
		if !first && i+2 < len(b) && b[i] == ',' && b[i+1] == ' ' && b[i+2] == '"' {
			i += 2
		} else if i, err = p.nextMember(i, first, '}'); err != nil {
			return i, err
		} else if b[i] == '}' {
			if repeated {
				p.list = lastOfEach(p.list)
			}
			return i + 1, nil
		}
		if key, i, err = p.argKey(i, cat, key); err != nil {
			return i, err
		}
		if key.seen < p.lists {
			key.seen = p.lists
		} else {
			repeated = true
		}
		if i < len(b) && b[i] == ' ' {
			i++
		}
		if i >= len(b) || b[i] <= ' ' {
			if i = jsonscan.Space(b, i); i >= len(b) {
				return i, errShort
			}
		}
		start, before := i, len(p.list)
		if i, err = p.value(i, key.sym, encode && (all || key.min), inArgs, 0); err != nil {
			return i, err
		}
		if len(p.list) > before && (key.secret != nil || mayHide(b[start:i])) {
			p.hide(before, key)
		}
		if key.role != argNone {
			p.got[key.role] = argValue{b[start:i]}
			p.found |= 1 << key.role
		}
	}
}

// argKey reads the key at b[i] and the colon after it.
func (p *parser) argKey(i int, cat *catEntry, last *argKey) (key *argKey, next int, err error) {
	b := p.b
	for _, k := range [...]*argKey{last.next, last.before} {
		if k != nil && i+1+len(k.text) <= len(b) && b[i] == '"' && string(b[i+1:i+1+len(k.text)]) == k.text {
			return k, i + 1 + len(k.text), nil
		}
	}
	if i >= len(b) {
		return nil, i, errShort
	}
	if b[i] != '"' {
		return nil, i, errSyntax
	}
	raw, escaped, end, err := p.str(i, inKey)
	if err != nil {
		return nil, end, err
	}
	if next = jsonscan.Space(b, end); next >= len(b) {
		return nil, next, errShort
	}
	if b[next] != ':' {
		return nil, next, errSyntax
	}
	key = cat.keys[string(raw)]
	if key == nil {
		text := string(raw)
		if escaped {
			text = string(p.unescape(nil, raw))
		}
		key = &argKey{text: string(raw) + `":`, sym: p.opt.Syms.Intern(text), role: argNames[text], min: minimalArgs[text] || slices.Contains(p.opt.Filter.ArgNames, text), secret: redact.SecretIn(text)}
		if len(cat.keys) < maxCached {
			cat.keys[string(raw)] = key
		}
		if escaped || len(cat.keys) == maxCached {
			key.seen = always
		}
	}
	last.next, last.before = key, last.next
	return key, next + 1, nil
}

// lastOfEach returns a list of arguments without those that are repeated later.
func lastOfEach(list trace.ArgList) (out trace.ArgList) {
	left := map[trace.Sym]int{}
	for a := range list.All {
		left[a.Key]++
	}
	for a := range list.All {
		if left[a.Key]--; left[a.Key] > 0 {
			continue
		}
		switch a.Kind {
		case trace.ArgString:
			out = out.Bytes(a.Key, a.Bytes())
		case trace.ArgInt:
			out = out.Int(a.Key, a.Int())
		case trace.ArgUint:
			out = out.Uint(a.Key, a.Uint())
		case trace.ArgFloat:
			out = out.Float(a.Key, a.Float())
		case trace.ArgBool:
			out = out.Bool(a.Key, a.Bool())
		case trace.ArgArray:
			out = out.Array(a.Key, a.Bytes())
		case trace.ArgDict:
			out = out.Dict(a.Key, a.Bytes())
		}
	}
	return out
}

// A context is what a string or a value is part of.
type context uint8

const (
	inKey   context = iota // a key
	inEvent                // a member of an event
	inName                 // the name of an event
	inArgs                 // a member of the arguments, at any depth
	inList                 // an element of a list
)

// maxDepth bounds the nesting of arguments.
const maxDepth = 128

// skip finds the end of the value at b[i].
func (p *parser) skip(i int, in context) (next int, err error) {
	return p.value(i, 0, false, in, 0)
}

// value reads the value at b[i], and appends it to p.list if it is to be encoded.
func (p *parser) value(i int, key trace.Sym, encode bool, in context, depth int) (next int, err error) {
	switch c := p.b[i]; {
	case c == '"':
		raw, escaped, next, err := p.str(i, in)
		if err != nil || !encode {
			return next, err
		}
		if escaped {
			p.text = p.unescape(p.text[:0], raw)
			raw = p.text
		}
		p.list = p.list.Bytes(key, raw)
		return next, nil
	case c-'0' <= 9 || c == '-':
		return p.number(i, key, encode)
	case c == '[':
		return p.array(i, key, encode, depth+1)
	case c == '{':
		return p.dict(i, key, encode, depth+1)
	case c == ',' || c == '}' || c == ']':
		p.notes.missing++
		return i, nil
	}
	return p.word(i, key, encode)
}

// number reads the number at b[i].
func (p *parser) number(i int, key trace.Sym, encode bool) (next int, err error) {
	b, start := p.b, i
	if b[i] == '-' {
		i++
	}
	var u uint64
	for i < len(b) && b[i]-'0' <= 9 {
		u = u*10 + uint64(b[i]-'0')
		i++
	}
	if i == len(b) {
		return i, errShort
	}
	if c := b[i]; c != ',' && c != '}' && c != ']' && c > ' ' || i-start > 18 || b[i-1] == '-' {
		return p.word(start, key, encode)
	}
	if !encode {
		return i, nil
	}
	if b[start] == '-' {
		p.list = p.list.Int(key, -int64(u))
	} else {
		p.list = p.list.Int(key, int64(u))
	}
	return i, nil
}

// word reads the word at b[i], or a number that is not a short integer.
func (p *parser) word(i int, key trace.Sym, encode bool) (next int, err error) {
	b := p.b
	for next = i; ; next++ {
		if next == len(b) {
			return next, errShort
		}
		if !wordBytes[b[next]] {
			break
		}
	}
	text := b[i:next]
	if len(text) == 0 {
		return next, errSyntax
	}
	kind := kindOf(text)
	if kind == wordBare {
		p.notes.bare++
	}
	if !encode {
		return next, nil
	}
	switch kind {
	case wordNull:
	case wordTrue, wordFalse:
		p.list = p.list.Bool(key, kind == wordTrue)
	case wordInt:
		if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			p.list = p.list.Int(key, v)
			break
		}
		if v, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			p.list = p.list.Uint(key, v)
			break
		}
		p.list = p.list.Bytes(key, text) // a float would lose digits
	case wordFloat:
		if v, err := strconv.ParseFloat(string(text), 64); err == nil && !math.IsInf(v, 0) {
			p.list = p.list.Float(key, v)
			break
		}
		fallthrough
	default:
		p.list = p.list.Bytes(key, text)
	}
	return next, nil
}

// wordBytes are the characters of numbers and words: those of JSON, "inf", "N/A",
// "-nan(ind)", "1.#INF".
var wordBytes = func() (t [256]bool) {
	for c := range 256 {
		t[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	for _, c := range []byte("+-./#()_%") {
		t[c] = true
	}
	return t
}()

// elementStart are the bytes that can begin a value.
var elementStart = func() (t [256]bool) {
	t = wordBytes
	for _, c := range []byte("\"[{") {
		t[c] = true
	}
	return t
}()

// A wordKind is the type of a number or word.
type wordKind uint8

const (
	wordBare wordKind = iota // not JSON
	wordNull
	wordTrue
	wordFalse
	wordInt
	wordFloat
)

func kindOf(text []byte) wordKind {
	switch string(text) {
	case "null":
		return wordNull
	case "true":
		return wordTrue
	case "false":
		return wordFalse
	}
	kind, i := wordInt, 0
	digits := func() bool {
		start := i
		for i < len(text) && text[i]-'0' <= 9 {
			i++
		}
		return i > start
	}
	if text[0] == '-' {
		i++
	}
	if !digits() {
		return wordBare
	}
	if i < len(text) && text[i] == '.' {
		kind = wordFloat
		if i++; !digits() {
			return wordBare
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		kind = wordFloat
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return wordBare
		}
	}
	if i < len(text) {
		return wordBare
	}
	return kind
}

// array reads the list at b[i].
func (p *parser) array(i int, key trace.Sym, encode bool, depth int) (next int, err error) {
	if depth > maxDepth {
		return i, errDeep
	}
	at := 0
	if encode {
		p.list = p.list.Array(key, nil)
		at = len(p.list)
	}
	i++
	for first := true; ; first = false {
		if !first && i+2 < len(p.b) && p.b[i] == ',' && p.b[i+1] == ' ' && elementStart[p.b[i+2]] {
			i += 2
		} else if i, err = p.nextMember(i, first, ']'); err != nil {
			return i, err
		}
		before := len(p.list)
		if p.b[i] == ']' {
			i++
			break
		}
		if p.careful && p.b[i] == '}' { // Kineto cut off long lists in November 2024
			p.notes.lists++
			break
		}
		start := i
		if i, err = p.value(i, 0, encode, inList, depth); err != nil {
			return i, err
		}
		if p.careful && p.b[start] == '"' {
			j := jsonscan.Space(p.b, i)
			if j >= len(p.b) {
				return j, errShort
			}
			if p.b[j] == ':' { // this was already the next key
				p.notes.lists++
				p.list, i = p.list[:before], len(bytes.TrimRight(p.b[:start], " \t\r\n"))
				if p.b[i-1] == ',' {
					i--
				}
				break
			}
		}
		if i == start {
			return i, errSyntax // no value
		}
	}
	if encode {
		p.closeList(at)
	}
	return i, nil
}

// dict reads the object at b[i].
func (p *parser) dict(i int, key trace.Sym, encode bool, depth int) (next int, err error) {
	if depth > maxDepth {
		return i, errDeep
	}
	// If two processes wrote into one file, the other's event may begin here.
	if other, err := p.startsOver(i); other || err != nil {
		return i, cmp.Or(err, errInside)
	}
	at := 0
	if encode {
		p.list = p.list.Dict(key, nil)
		at = len(p.list)
	}
	i++
	for first := true; ; first = false {
		if i, err = p.nextMember(i, first, '}'); err != nil {
			return i, err
		}
		if p.b[i] == '}' {
			break
		}
		if p.b[i] != '"' {
			return i, errSyntax
		}
		raw, escaped, end, err := p.str(i, inKey)
		if err != nil {
			return end, err
		}
		var sym trace.Sym
		if encode {
			if escaped {
				p.text = p.unescape(p.text[:0], raw)
				raw = p.text
			}
			sym = p.symbols.Intern(raw)
		}
		if i, err = p.colon(end); err != nil {
			return i, err
		}
		if i, err = p.value(i, sym, encode, inArgs, depth); err != nil {
			return i, err
		}
	}
	if encode {
		p.closeList(at)
	}
	return i + 1, nil
}

// closeList writes the length of the list or object that begins at p.list[at] in front of it, where one byte is
// reserved.
func (p *parser) closeList(at int) {
	n := len(p.list) - at
	if n < 0x80 {
		p.list[at-1] = byte(n)
		return
	}
	var size [10]byte
	m := 0
	for u := uint(n); ; m++ {
		size[m] = byte(u) | 0x80
		if u >>= 7; u == 0 {
			size[m] &= 0x7f
			break
		}
	}
	p.list = append(p.list, size[:m]...) // make room
	copy(p.list[at+m:], p.list[at:at+n])
	copy(p.list[at-1:], size[:m+1])
}

// unescape appends the text that raw stands for to dst.
func (p *parser) unescape(dst, raw []byte) []byte { return jsonscan.Unescape(dst, raw) }
