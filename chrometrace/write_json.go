package chrometrace

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// del is a control character that JSON allows in strings. Perfetto does not, and rejects a file that has it in
// its header.
const del = 0x7f

// appendQuoted appends s as a JSON string of raw UTF-8, each run of invalid
// bytes as one U+FFFD.
func appendQuoted(b, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	b = append(b, '"')
	plain := 0 // start of the bytes still to be copied unchanged
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

// appendArgs appends the arguments of an event: its own, then those of its subject. Of several with one name it
// writes the first, so that an event's own arguments win.
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
	b[len(b)-1] = '}' // replaces the last comma
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

// arrows determines how every flow is written.
//
// The usual form is a pair of events "s" and "f" with an id of their own. Importers attach such an event to the
// slice that started last on its thread, even one that is over. So it has the start time of its slice, at which
// importers see the slice before it, and the instants of that time come after it in the file.
//
// That fails if a child starts together with its parent: the event would attach to the child. Such an arrow is
// written on the slices themselves, as bind_id with flow_out and flow_in, as long as both are free for it: a
// slice has one bind_id, which several arrows may start from. Otherwise the first form is used, and the arrow
// is drawn from or to the child.
//
// Viewers draw arrows forward in time. One whose target starts before its source is therefore written from
// target to source, as the native format must.
type arrows struct {
	ends  []arrowEnd // ordered by time
	binds map[trace.SliceID]bind
}

// arrowEnd is an event "s" or "f".
type arrowEnd struct {
	slice trace.SliceID
	flow  uint32 // index in Flows; its id is one more
	phase byte
}

// bind holds the arrows that a slice carries itself.
type bind struct {
	id  int
	out bool // arrows start here; otherwise one ends here
}

func newArrows(t *trace.Trace) arrows {
	a := arrows{binds: map[trace.SliceID]bind{}}
	for i, f := range t.Flows {
		if t.Slices[f.To].Time < t.Slices[f.From].Time {
			f.From, f.To = f.To, f.From
		}
		// Perfetto numbers the other form from 0 and shares the ids.
		id := len(t.Flows) + 1 + i
		if (!isLastStarted(t, f.From) || !isLastStarted(t, f.To)) && a.bind(t, f, id) {
			continue
		}
		a.ends = append(a.ends, arrowEnd{f.From, uint32(i), 's'}, arrowEnd{f.To, uint32(i), 'f'})
	}
	slices.SortStableFunc(a.ends, func(x, y arrowEnd) int {
		return cmp.Compare(t.Slices[x.slice].Time, t.Slices[y.slice].Time)
	})
	return a
}

// bind writes a flow on its slices, if they are free and in the right order.
func (a *arrows) bind(t *trace.Trace, f trace.Flow, id int) bool {
	from, taken := a.binds[f.From]
	if taken && !from.out || !before(t, f.From, f.To) {
		return false
	}
	if _, taken := a.binds[f.To]; taken {
		return false
	}
	if !taken {
		from = bind{id, true}
		a.binds[f.From] = from
	}
	a.binds[f.To] = bind{from.id, false}
	return true
}

// before reports whether importers see slice a before slice b: by start, longest first, then in file order.
func before(t *trace.Trace, a, b trace.SliceID) bool {
	x, y := &t.Slices[a], &t.Slices[b]
	return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(y.Dur, x.Dur), cmp.Compare(a, b)) < 0
}

// isLastStarted reports whether importers see no later slice start with s on its track. Such slices are
// neighbors in the table; a longer one may follow a shorter one there, if the model had to cut their starts.
func isLastStarted(t *trace.Trace, s trace.SliceID) bool {
	starts := func(o trace.SliceID) bool {
		return t.Slices[o].Track == t.Slices[s].Track && t.Slices[o].Time == t.Slices[s].Time
	}
	for o := s + 1; int(o) < len(t.Slices) && starts(o); o++ {
		if before(t, s, o) {
			return false
		}
	}
	for o := s - 1; o > 0 && starts(o); o-- {
		if before(t, s, o) {
			return false
		}
	}
	return true
}
