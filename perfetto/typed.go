package perfetto

import (
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// maxTypedText is the length up to which a text takes less space than a string id in a DebugAnnotation.
const maxTypedText = 4

// wordNumbers maps words to their numbers.
var wordNumbers = func() map[string]uint64 {
	numbers := make(map[string]uint64, len(words))
	for i, w := range words {
		numbers[w] = uint64(i)
	}
	return numbers
}()

// typedArg appends an argument to the event's typed ones. It reports whether the argument is typed and its
// value has the right kind.
func (e *encoder) typedArg(a trace.Arg) bool {
	f := e.fields[a.Key]
	switch f.as {
	case asInt:
		if a.Kind != trace.ArgInt {
			return false
		}
		e.typed = appendUint(e.typed, int(f.number), uint64(a.Int()))
	case asReal:
		if a.Kind != trace.ArgFloat {
			return false
		}
		e.typed = appendDouble(e.typed, int(f.number), a.Float())
	case asText:
		if a.Kind == trace.ArgArray && len(a.Bytes()) == 0 {
			e.typed = appendString(e.typed, int(f.number), "[]")
			return true
		}
		if a.Kind != trace.ArgString || len(a.Bytes()) > maxTypedText || !utf8.Valid(a.Bytes()) {
			return false
		}
		e.typed = appendString(e.typed, int(f.number), a.Bytes())
	case asWord:
		word, ok := wordNumbers[string(a.Bytes())]
		if a.Kind != trace.ArgString || !ok {
			return false
		}
		e.typed = appendUint(e.typed, int(f.number), word)
	case asInts, asTexts, asWords:
		return a.Kind == trace.ArgArray && e.typedArray(a, f)
	default:
		return false
	}
	return true
}

// typedArray appends an array if its elements have the right kind.
func (e *encoder) typedArray(a trace.Arg, f typedField) bool {
	c, known := e.composites.find(a, typedComposite|uint32(f.number))
	if !known {
		before := len(e.typed)
		e.typed = appendElements(e.typed, a, f)
		added := e.typed[before:]
		c.keep(a, typedComposite|uint32(f.number), added)
		return len(added) > 0
	}
	e.typed = append(e.typed, c.encoded()...)
	return len(c.encoded()) > 0
}

// appendElements appends the field of an array. It appends nothing if an element has the wrong kind, or if
// there are none, as trace_processor would drop the argument.
func appendElements(b []byte, a trace.Arg, f typedField) []byte {
	before, n, size := len(b), 0, 0
	at := 0
	if f.as != asTexts {
		b, at = open(b, int(f.number))
	}
	for x := range a.Elems {
		ok := x.Kind == trace.ArgString
		switch f.as {
		case asInts:
			ok = x.Kind == trace.ArgInt
			b = appendVarint(b, uint64(x.Int()))
		case asTexts:
			ok = ok && utf8.Valid(x.Bytes())
			b = appendString(b, int(f.number), x.Bytes())
		case asWords:
			var word uint64
			if ok {
				word, ok = wordNumbers[string(x.Bytes())]
			}
			b = appendVarint(b, word)
		}
		if !ok {
			return b[:before]
		}
		n, size = n+1, size+len(x.Bytes())
	}
	if n == 0 || f.as == asTexts && size > n*maxTypedText {
		return b[:before]
	}
	if f.as != asTexts {
		b = shut(b, at)
	}
	return b
}

// appendTyped appends the typed arguments of an event to its content.
func (e *encoder) appendTyped(b []byte) []byte {
	if len(e.typed) == 0 {
		return b
	}
	b = appendVarint(b, eventArgs<<3|wireBytes)
	return append(appendVarint(b, uint64(len(e.typed))), e.typed...)
}
