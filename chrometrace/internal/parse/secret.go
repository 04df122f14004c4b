package parse

import (
	"bytes"

	"github.com/sgtrace/sgtrace/trace/redact"
)

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
