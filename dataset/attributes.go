package dataset

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/dataset/pseudonym"
	"github.com/sgtrace/sgtrace/trace"
)

// Attributes are a JSON object in a column of text, from which they come back as they were:
// in their order, with the types of their values. A real number has a point or an exponent, so
// that it is no integer. Bytes of texts that are no UTF-8 stay as they are.

// An encoder writes attributes.
type encoder struct {
	symbol     func(trace.Sym) string
	pseudonyms *pseudonym.Maker // nil leaves texts as they are
}

// attributes appends arguments as a JSON object, nothing if there are none.
func (e *encoder) attributes(b []byte, all func(func(trace.Arg) bool)) []byte {
	start := len(b)
	for a := range all {
		b = e.value(e.name(b, len(b) == start, a.Key), a.Key, a)
	}
	if len(b) > start {
		b = append(b, '}')
	}
	return b
}

// name begins a member of an object, and the object with the first one.
func (e *encoder) name(b []byte, first bool, key trace.Sym) []byte {
	if first {
		b = append(b, '{')
	} else {
		b = append(b, ',')
	}
	name := e.symbol(key)
	if e.pseudonyms != nil {
		name = e.pseudonyms.Key(name)
	}
	return append(appendText(b, name), ':')
}

// value appends a value of a member that is called by key; elements of lists are called as these.
func (e *encoder) value(b []byte, key trace.Sym, a trace.Arg) []byte {
	switch a.Kind {
	case trace.ArgString:
		text := string(a.Bytes())
		if e.pseudonyms != nil {
			text = e.pseudonyms.Attribute(e.symbol(key), text)
		}
		return appendText(b, text)
	case trace.ArgInt:
		return strconv.AppendInt(b, a.Int(), 10)
	case trace.ArgUint:
		return strconv.AppendUint(b, a.Uint(), 10)
	case trace.ArgFloat:
		return appendReal(b, a.Float())
	case trace.ArgBool:
		return strconv.AppendBool(b, a.Bool())
	case trace.ArgArray:
		b = append(b, '[')
		first := true
		for x := range a.Elems {
			if !first {
				b = append(b, ',')
			}
			b, first = e.value(b, key, x), false
		}
		return append(b, ']')
	}
	first := true
	for x := range a.Elems {
		b = e.value(e.name(b, first, x.Key), x.Key, x)
		first = false
	}
	if first {
		b = append(b, '{')
	}
	return append(b, '}')
}

// appendReal appends a real number. What JSON has no number for is one beyond all others, or
// null.
func appendReal(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "null"...)
	case math.IsInf(v, 1):
		return append(b, "1e999"...)
	case math.IsInf(v, -1):
		return append(b, "-1e999"...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, 64)
	if !bytes.ContainsAny(b[start:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// appendText appends a text in quotes.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// errDamaged says that a column does not hold what was written.
var errDamaged = errors.New("a value that was not written so")

// A parser reads attributes.
type parser struct {
	syms *trace.SymbolCache
	b    []byte
	text []byte
}

// attributes appends the members of an object to a list.
func (p *parser) attributes(list trace.ArgList, text []byte) (trace.ArgList, error) {
	if len(text) == 0 {
		return list, nil
	}
	p.b = text
	list, err := p.object(list)
	if err == nil && len(p.b) > 0 {
		err = errDamaged
	}
	return list, err
}

// take takes a character if it is next.
func (p *parser) take(c byte) bool {
	if len(p.b) == 0 || p.b[0] != c {
		return false
	}
	p.b = p.b[1:]
	return true
}

func (p *parser) object(list trace.ArgList) (_ trace.ArgList, err error) {
	if !p.take('{') {
		return nil, errDamaged
	}
	for !p.take('}') {
		p.take(',')
		name, err := p.quoted()
		if err != nil {
			return nil, err
		}
		key := p.syms.Intern(name)
		if !p.take(':') {
			return nil, errDamaged
		}
		if list, err = p.value(list, key); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *parser) array() (list trace.ArgList, err error) {
	p.take('[')
	for !p.take(']') {
		p.take(',')
		if list, err = p.value(list, 0); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *parser) value(list trace.ArgList, key trace.Sym) (trace.ArgList, error) {
	if len(p.b) == 0 {
		return nil, errDamaged
	}
	switch p.b[0] {
	case '"':
		text, err := p.quoted()
		return list.Bytes(key, text), err
	case '[':
		elems, err := p.array()
		return list.Array(key, elems), err
	case '{':
		entries, err := p.object(nil)
		return list.Dict(key, entries), err
	}
	n := bytes.IndexAny(p.b, ",]}")
	if n <= 0 {
		return nil, errDamaged
	}
	word := string(p.b[:n])
	p.b = p.b[n:]
	return number(list, key, word)
}

// number appends what is written without quotes.
func number(list trace.ArgList, key trace.Sym, word string) (trace.ArgList, error) {
	switch word {
	case "true", "false":
		return list.Bool(key, word == "true"), nil
	case "null":
		return list.Float(key, math.NaN()), nil
	case "1e999":
		return list.Float(key, math.Inf(1)), nil
	case "-1e999":
		return list.Float(key, math.Inf(-1)), nil
	}
	if v, err := strconv.ParseInt(word, 10, 64); err == nil {
		return list.Int(key, v), nil
	}
	if v, err := strconv.ParseUint(word, 10, 64); err == nil {
		return list.Uint(key, v), nil
	}
	v, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return nil, errDamaged
	}
	return list.Float(key, v), nil
}

// quoted reads a text in quotes, which is valid until the next one.
func (p *parser) quoted() ([]byte, error) {
	if !p.take('"') {
		return nil, errDamaged
	}
	p.text = p.text[:0]
	for {
		n := bytes.IndexAny(p.b, `"\`)
		if n < 0 {
			return nil, errDamaged
		}
		p.text = append(p.text, p.b[:n]...)
		rest := p.b[n:]
		switch {
		case rest[0] == '"':
			p.b = rest[1:]
			return p.text, nil
		case len(rest) >= 6 && rest[1] == 'u':
			code, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
			if err != nil {
				return nil, errDamaged
			}
			p.text, p.b = utf8.AppendRune(p.text, rune(code)), rest[6:]
		case len(rest) >= 2:
			p.text, p.b = append(p.text, rest[1]), rest[2:]
		default:
			return nil, errDamaged
		}
	}
}
