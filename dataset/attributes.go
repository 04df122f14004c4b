package dataset

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A column of text holds attributes as a JSON object, from which they are restored exactly: in order, with
// the types of their values. A real number has a decimal point or an exponent, which distinguishes it from
// an integer. Text that is not UTF-8 keeps its bytes.

// An encoder writes attributes.
type encoder struct {
	symbol     func(trace.Sym) string
	pseudonyms *redact.Maker // nil leaves text as it is
}

// attributes appends arguments as a JSON object, or nothing if there are none.
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

// name appends the name of an object's member; for the first one, it also begins the object.
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

// value appends the value of a member named key, which is also the name of a list's elements.
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

// appendReal appends a real number. An infinity is written as a number beyond float64's range, and NaN as
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

// appendText appends text in quotes.
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

// errDamaged is returned if a column holds a value that the encoder never writes.
var errDamaged = errors.New("a value that was not written so")

// A parser parses attributes. After damage, it reads nothing more.
type parser struct {
	syms    *trace.SymbolCache
	b       []byte
	text    []byte
	damaged bool
}

// attributes appends the members of an object to list.
func (p *parser) attributes(list trace.ArgList, text []byte) (trace.ArgList, error) {
	if len(text) == 0 {
		return list, nil
	}
	p.b, p.damaged = text, false
	if list = p.object(list); p.damaged || len(p.b) > 0 {
		return nil, errDamaged
	}
	return list, nil
}

// take consumes a character if it is next.
func (p *parser) take(c byte) bool {
	if len(p.b) == 0 || p.b[0] != c {
		return false
	}
	p.b = p.b[1:]
	return true
}

// expect consumes a character, which must be next.
func (p *parser) expect(c byte) {
	if !p.take(c) {
		p.fail()
	}
}

// fail marks the input as damaged.
func (p *parser) fail() { p.b, p.damaged = nil, true }

func (p *parser) object(list trace.ArgList) trace.ArgList {
	p.expect('{')
	for !p.damaged && !p.take('}') {
		p.take(',')
		key := p.syms.Intern(p.quoted())
		p.expect(':')
		list = p.value(list, key)
	}
	return list
}

func (p *parser) array() (list trace.ArgList) {
	p.expect('[')
	for !p.damaged && !p.take(']') {
		p.take(',')
		list = p.value(list, 0)
	}
	return list
}

func (p *parser) value(list trace.ArgList, key trace.Sym) trace.ArgList {
	if len(p.b) == 0 {
		p.fail()
		return nil
	}
	switch p.b[0] {
	case '"':
		return list.Bytes(key, p.quoted())
	case '[':
		return list.Array(key, p.array())
	case '{':
		return list.Dict(key, p.object(nil))
	}
	n := bytes.IndexAny(p.b, ",]}")
	if n <= 0 {
		p.fail()
		return nil
	}
	word := string(p.b[:n])
	p.b = p.b[n:]
	return p.number(list, key, word)
}

// number appends a value written without quotes.
func (p *parser) number(list trace.ArgList, key trace.Sym, word string) trace.ArgList {
	switch word {
	case "true", "false":
		return list.Bool(key, word == "true")
	case "null":
		return list.Float(key, math.NaN())
	case "1e999":
		return list.Float(key, math.Inf(1))
	case "-1e999":
		return list.Float(key, math.Inf(-1))
	}
	if v, err := strconv.ParseInt(word, 10, 64); err == nil {
		return list.Int(key, v)
	}
	if v, err := strconv.ParseUint(word, 10, 64); err == nil {
		return list.Uint(key, v)
	}
	v, err := strconv.ParseFloat(word, 64)
	if err != nil {
		p.fail()
	}
	return list.Float(key, v)
}

// quoted parses text in quotes; the result is valid until the next call.
func (p *parser) quoted() []byte {
	p.expect('"')
	for p.text = p.text[:0]; ; {
		n := bytes.IndexAny(p.b, `"\`)
		if n < 0 {
			p.fail()
			return nil
		}
		p.text = append(p.text, p.b[:n]...)
		rest := p.b[n:]
		switch {
		case rest[0] == '"':
			p.b = rest[1:]
			return p.text
		case len(rest) >= 6 && rest[1] == 'u':
			code, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
			if err != nil {
				p.fail()
				return nil
			}
			p.text, p.b = utf8.AppendRune(p.text, rune(code)), rest[6:]
		case len(rest) >= 2:
			p.text, p.b = append(p.text, rest[1]), rest[2:]
		default:
			p.fail()
			return nil
		}
	}
}
