package otlpjson

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// The functions here walk an object or array that lies in b from index i on. They are lenient with commas and
// strict with everything else, so that they notice a record with a second one written into it. An err comes
// with the index at which it was detected.

// inObject reads the object at b[i], calling value for each key to read its value.
func inObject(b []byte, i int, value func(key []byte, i int) (next int, err error)) (next int, null bool, err error) {
	i, null, err = enter(b, i, '{')
	for !null && err == nil {
		var key []byte
		if key, i, err = nextKey(b, i); err != nil || key == nil {
			break
		}
		i, err = value(key, i)
	}
	return i, null, err
}

// inList reads the array at b[i].
func inList(b []byte, i int, element func(i int) (next int, err error)) (next int, err error) {
	i, null, err := enter(b, i, '[')
	for !null && err == nil {
		var ok bool
		if i, ok, err = nextElement(b, i); err != nil || !ok {
			break
		}
		i, err = element(i)
	}
	return i, err
}

// enter moves past the opening bracket at b[i]. null is returned for null instead of an object or array.
func enter(b []byte, i int, bracket byte) (next int, null bool, err error) {
	switch {
	case i >= len(b):
		return i, false, jsonscan.ErrShort
	case b[i] == bracket:
		return i + 1, false, nil
	case b[i] != 'n':
		return i, false, jsonscan.ErrSyntax
	}
	word, next, err := jsonscan.Literal(b, i)
	if err == nil && string(word) != "null" {
		return i, false, jsonscan.ErrSyntax
	}
	return next, true, err
}

// nextKey returns the next key of an object and the index of its value. At the end of the object key is nil and
// next is after the brace.
func nextKey(b []byte, i int) (key []byte, next int, err error) {
	for ; i < len(b) && b[i] != '"'; i++ {
		switch b[i] {
		case ',', ' ', '\n', '\r', '\t':
			continue
		case '}':
			return nil, i + 1, nil
		}
		return nil, i, jsonscan.ErrSyntax
	}
	if i >= len(b) {
		return nil, i, jsonscan.ErrShort
	}
	if end := jsonscan.EndOfRun(b, i+1); end < len(b) && b[end] == '"' {
		key, next = b[i+1:end], end+1
	} else if key, next, err = escapedKey(b, i); err != nil {
		return nil, next, err
	}
	if next = jsonscan.Space(b, next); next >= len(b) {
		return nil, next, jsonscan.ErrShort
	}
	if b[next] != ':' {
		return nil, next, jsonscan.ErrSyntax
	}
	if next = jsonscan.Space(b, next+1); next >= len(b) {
		return nil, next, jsonscan.ErrShort
	}
	return key, next, nil
}

func escapedKey(b []byte, i int) (key []byte, next int, err error) {
	raw, _, next, err := jsonscan.String(b, i)
	return jsonscan.Unescape(nil, raw), next, err
}

// nextElement returns the index of the next element of an array. At the end of the array ok is false and next
// is after the bracket.
func nextElement(b []byte, i int) (next int, ok bool, err error) {
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', ' ', '\n', '\r', '\t':
			continue
		case ']':
			return i + 1, false, nil
		}
		return i, true, nil
	}
	return i, false, jsonscan.ErrShort
}

// skip finds the end of an ignored value at b[i]. Such values contain no records of these levels; if one seems
// to, it was cut off before the record.
func skip(b []byte, i int, records levels) (next int, err error) {
	if i >= len(b) || b[i] != '{' && b[i] != '[' {
		return jsonscan.Value(b, i)
	}
	next, err = jsonscan.Value(b, i)
	if err == jsonscan.ErrSyntax {
		return next, err
	}
	n, _, found := nextRecord(b[i:next], records, err == nil)
	if found {
		return i + n, errBegins
	}
	return next, err
}

// recordKeys are the keys that identify an object as a record, with the bracket of their values and the level
// of the list that the record belongs to, as in the parser.
var recordKeys = func() map[string]recordKey {
	keys := map[string]recordKey{
		"resource":               {inResourceSpans, '{'},
		"scope":                  {inScopeSpans, '{'},
		"instrumentationLibrary": {inScopeSpans, '{'},
	}
	for _, l := range lists {
		keys[l.key] = recordKey{l.from - 1, '['}
	}
	for _, key := range otherSignals {
		keys[key] = recordKey{atTop, '['}
	}
	return keys
}()

type recordKey struct {
	level level
	opens byte
}

// maxNested is the length of the longest nested value that recordAt looks past.
const maxNested = 1 << 16

// recordAt reports whether the object at b[i] is a record, down to spans, and the level of the list that it
// belongs to. It goes by the keys that are there, in any order, and needs no more than the record's beginning.
//
// An object with only an id is not a span: links and log records have one, too. Of the members that are objects
// or lists, it looks past those that spans have.
func recordAt(b []byte, i int) (l level, ok bool, err error) {
	named, other := false, false // named: an id was seen; other: a key that only spans have
	for i++; ; {
		key, at, err := nextKey(b, i)
		if err != nil || key == nil {
			return 0, false, short(err)
		}
		if r, ok := recordKeys[string(key)]; ok && b[at] == r.opens {
			return r.level, true, nil
		}
		switch string(key) {
		case "traceId", "spanId", "trace_id", "span_id":
			named = true
		case "parentSpanId", "parent_span_id",
			"startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "end_time_unix_nano":
			other = true
		}
		if named && other {
			return inSpans, true, nil
		}
		if b[at] == '{' || b[at] == '[' {
			switch string(key) {
			case "attributes", "events", "links", "status":
			default:
				return 0, false, nil
			}
		}
		i, err = jsonscan.Value(b[:min(len(b), at+maxNested)], at)
		if err == jsonscan.ErrShort && at+maxNested < len(b) || b[at] != '"' && documentIn(b[at:i]) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, short(err)
		}
	}
}

// documentIn reports whether a document seems to begin in b.
func documentIn(b []byte) bool {
	for key, r := range recordKeys {
		if r.level == atTop && bytes.Contains(b, []byte(`"`+key+`"`)) {
			return true
		}
	}
	return false
}

// short keeps err only if it is ErrShort: any other error means "not a record".
func short(err error) error {
	if err == jsonscan.ErrShort {
		return err
	}
	return nil
}

// levels is a set of levels of lists.
type levels uint8

const (
	anyRecord levels = 1<<atTop | 1<<inResourceSpans | 1<<inScopeSpans | 1<<inSpans
	// Logs, metrics and profiles have resources and scopes of their own.
	notInOtherSignals levels = 1<<atTop | 1<<inSpans
)

// nextRecord finds the first record in b that belongs to a list of one of the levels, and returns the position
// of its brace. If there is none, n is the number of bytes of b that can be discarded without losing a record
// that is cut at the end: all of them if nothing follows b.
func nextRecord(b []byte, of levels, last bool) (n int, l level, found bool) {
	for i := 0; ; i++ {
		brace := bytes.IndexByte(b[i:], '{')
		if brace < 0 {
			return len(b), 0, false
		}
		i += brace
		l, ok, err := recordAt(b, i)
		if ok && of&(1<<l) != 0 {
			return i, l, true
		}
		if err != nil && !last {
			return i, 0, false
		}
	}
}
