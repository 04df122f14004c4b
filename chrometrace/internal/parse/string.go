package parse

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// str reads the string at b[i]. raw is the text between the quotes.
//
// At first, any quote without a backslash ends a string, as in JSON. An event that turns out to be invalid is
// read again in careful mode: until July 2026, Kineto did not escape names, and those of compiled functions
// contain quotes and backslashes (pytorch#146900, #98432); so do arguments. In careful mode, a quote only ends
// a string if valid JSON follows.
func (p *parser) str(i int, in context) (raw []byte, escaped bool, next int, err error) {
	b := p.b
	if p.careful && in >= inName {
		return p.carefulStr(i, in)
	}
	if end := jsonscan.EndOfRun(b, i+1); end < len(b) && b[end] == '"' {
		return b[i+1 : end], false, end + 1, nil
	}
	return jsonscan.String(b, i)
}

// carefulStr is str for an event that is damaged.
func (p *parser) carefulStr(i int, in context) (raw []byte, escaped bool, next int, err error) {
	b, start, odd := p.b, i+1, 0
	for i = start; ; i++ {
		if i = jsonscan.EndOfRun(b, i); i+1 >= len(b) {
			return nil, false, len(b), errShort
		}
		backslash := b[i] == '\\'
		if backslash {
			escaped = true
			if i++; b[i] != '"' {
				continue
			}
		}
		ends, err := p.ends(i+1, in, odd == 0)
		if err != nil {
			return nil, false, i, err
		}
		// Only names are believed to end with a backslash, as a path may.
		if ends && (!backslash || in == inName) {
			if backslash {
				odd++
			}
			break
		}
		if !backslash {
			odd++
		}
	}
	raw = b[start:i]
	p.notes.quotes += min(odd, 1)
	if odd > 0 || len(raw) > 64 {
		inside, err := p.eventIn(start, i)
		if inside {
			err = errInside
		}
		if err != nil {
			return nil, false, i, err
		}
	}
	return raw, escaped, i + 1, nil
}

// ends reports whether the bytes at b[i] fit after the closing quote of a string. A colon after an element
// fits, as in a key after an unclosed list, but only with keyInList.
func (p *parser) ends(i int, in context, keyInList bool) (bool, error) {
	b := p.b
	if i = jsonscan.Space(b, i); i >= len(b) {
		return false, errShort
	}
	c := b[i]
	if in == inList && c == ':' {
		return keyInList, nil
	}
	if c != ',' && c != '}' && c != ']' || c == ']' && in != inList {
		return false, nil
	}
	j := jsonscan.Space(b, i+1)
	if j >= len(b) {
		if p.final {
			return c != ',', nil
		}
		return false, errShort
	}
	switch {
	case c == ']':
		return b[j] == ',' || b[j] == '}' || b[j] == ']', nil
	case c == '}':
		return b[j] == ',' || b[j] == '}' || b[j] == ']' || b[j] == '{', nil
	case in == inName:
		return p.keyAt(j, isEventKey)
	case in == inArgs:
		return p.keyAt(j, nil)
	}
	return wordBytes[b[j]] || b[j] == '"' || b[j] == '[' || b[j] == '{', nil
}

// maxKey is the length up to which a key is recognized.
const maxKey = 64

// keyAt reports whether there is a key at b[i], followed by a colon.
func (p *parser) keyAt(i int, known func(key []byte) bool) (bool, error) {
	b := p.b
	if b[i] != '"' {
		return b[i] == '}', nil // after a superfluous comma
	}
	end := i + 1
	for ; end < len(b) && b[end] != '"'; end++ {
		if end-i > maxKey || b[end] == '\n' {
			return false, nil
		}
	}
	if end < len(b) && known != nil && !known(b[i+1:end]) {
		return false, nil
	}
	if end = jsonscan.Space(b, end+1); end >= len(b) {
		if p.final {
			return false, nil
		}
		return false, errShort
	}
	return b[end] == ':', nil
}

// mayHide reports whether a value, as written, may be a secret even under a harmless argument name: a text of
// some length, or an object.
func mayHide(value []byte) bool {
	const short = 12
	switch value[0] {
	case '"':
		return len(value) > short
	case '{':
		return true
	}
	return value[0] == '[' && bytes.IndexByte(value, '{') >= 0
}

// hide removes the argument that begins at p.list[from:] if it may hold a secret.
func (p *parser) hide(from int, key *argKey) {
	if !p.opt.KeepSecrets && p.secrets.Holds(p.list[from:]) {
		if p.notes.secrets == 0 {
			p.notes.secret = key.sym
		}
		p.notes.secrets++
		p.list = p.list[:from]
	}
}

// masked returns the name of a row without credentials.
func (p *parser) masked(name string) string {
	if p.opt.KeepSecrets {
		return name
	}
	return redact.Mask(name)
}
