package chrometrace

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// del is a control character that JSON allows in strings. Perfetto does not, and reads
// nothing of a file that has it in its header.
const del = 0x7f

// appendQuoted appends s as a JSON string of raw UTF-8, each run of invalid
// bytes as one U+FFFD.
func appendQuoted(b, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	b = append(b, '"')
	plain := 0 // start of what is still to be copied as it is
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != del && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[plain:i]...)
		plain = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[plain:]...), '"')
}

// quote returns s as a JSON string.
func quote(s string) string { return string(appendQuoted(nil, []byte(s))) }

// appendMicros appends ns >= 0 as microseconds with three decimals.
func appendMicros(b []byte, ns uint64) []byte {
	b = strconv.AppendUint(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// appendFloat appends v; JSON has no numbers for NaN and the infinities.
func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		b = append(b, '"')
		return append(strconv.AppendFloat(b, v, 'g', -1, 64), '"')
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendArgs appends the arguments of an event: its own, then those of its
// subject. Of several with one name the first is written, so that an event's
// own wins.
func (e *encoder) appendArgs(b []byte, own, shared trace.ArgsID) []byte {
	if own == 0 && shared == 0 {
		return b
	}
	e.round++
	before := len(b)
	b = append(b, `,"args":{`...)
	empty := len(b)
	for _, id := range [...]trace.ArgsID{own, shared} {
		for a := range e.t.Args.All(id) {
			if e.seen[a.Key] == e.round {
				continue
			}
			e.seen[a.Key] = e.round
			b = append(append(b, e.quote(a.Key)...), ':')
			b = append(e.appendValue(b, a), ',')
		}
	}
	if len(b) == empty {
		return b[:before]
	}
	b[len(b)-1] = '}' // the last comma
	return b
}

func (e *encoder) appendValue(b []byte, a trace.Arg) []byte {
	switch a.Kind {
	case trace.ArgString:
		return appendQuoted(b, a.Bytes())
	case trace.ArgInt:
		return strconv.AppendInt(b, a.Int(), 10)
	case trace.ArgUint:
		// Readers hold integers in an int64 at best; Perfetto turns larger ones
		// into garbage.
		if a.Uint() > math.MaxInt64 {
			return append(strconv.AppendUint(append(b, '"'), a.Uint(), 10), '"')
		}
		return strconv.AppendUint(b, a.Uint(), 10)
	case trace.ArgFloat:
		return appendFloat(b, a.Float())
	case trace.ArgBool:
		return strconv.AppendBool(b, a.Bool())
	case trace.ArgArray:
		b = append(b, '[')
		start := len(b)
		for element := range a.Elems {
			b = append(e.appendValue(b, element), ',')
		}
		return closeList(b, start, ']')
	case trace.ArgDict:
		b = append(b, '{')
		start := len(b)
		for entry := range a.Elems {
			b = append(append(b, e.quote(entry.Key)...), ':')
			b = append(e.appendValue(b, entry), ',')
		}
		return closeList(b, start, '}')
	}
	return append(b, "null"...)
}

// closeList ends a list whose elements, if any, each end with a comma.
func closeList(b []byte, start int, end byte) []byte {
	if len(b) == start {
		return append(b, end)
	}
	b[len(b)-1] = end
	return b
}
