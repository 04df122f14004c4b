package parse

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// str reads the string at b[i]. raw is what lies between the quotes.
//
// At first any quote without a backslash ends a string, as in JSON. An event that
// is no JSON then is read again carefully: Kineto wrote names as they are until
// July 2026, and those of compiled functions have quotes and backslashes in them
// (pytorch#146900, #98432); so have arguments. There, a quote ends a string if
// what follows fits.
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
		// A path may end with a backslash; only names are believed to.
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

// ends reports whether what follows at b[i] fits behind the closing quote of a
// string. In a list that was not closed that may be the colon of a key, unless
// the string is odd anyway.
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

// maxKey is how long a key may be to be recognized as one.
const maxKey = 64

// keyAt reports whether there is a key at b[i], with a colon behind it.
func (p *parser) keyAt(i int, known func(key []byte) bool) (bool, error) {
	b := p.b
	if b[i] != '"' {
		return b[i] == '}', nil // behind a superfluous comma
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

// mayHide reports whether a value, as it is written, may be a secret though the name of its
// argument says nothing: a text of some length, or an object.
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

// hide takes the argument that begins at p.list[from:] off if it may hold a secret.
func (p *parser) hide(from int, key *argKey) {
	if !p.opt.KeepSecrets && p.secrets.Holds(p.list[from:]) {
		if p.notes.secrets == 0 {
			p.notes.secret = key.sym
		}
		p.notes.secrets++
		p.list = p.list[:from]
	}
}

// masked returns a name of a row without credentials.
func (p *parser) masked(name string) string {
	if p.opt.KeepSecrets {
		return name
	}
	return redact.Mask(name)
}
