package perfetto

import (
	"cmp"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// dictionary assigns ids to the symbols used in one field of InternedData, in order of first use. The numbers
// of the symbols will not do, since they depend on the readers' goroutines and are not dense.
type dictionary struct {
	field int
	ids   []uint32 // by symbol; 0 if unused
	last  uint32
}

func newDictionary(field, symbols int) dictionary {
	return dictionary{field: field, ids: make([]uint32, symbols)}
}

// define gives sym, named name, an id if it has none. It appends the definition
// to defs.
func (d *dictionary) define(defs []byte, sym trace.Sym, name string) []byte {
	if d.ids[sym] != 0 {
		return defs
	}
	d.last++
	d.ids[sym] = d.last
	return appendDefinition(defs, d.field, d.last, name)
}

// argNames is the dictionary of the names of arguments. They are only discovered during writing: one goroutine
// defines while others look up.
type argNames struct {
	refs []atomic.Uint32 // nameRefs by symbol
	last uint32
}

// A nameRef is the id of an argument's name, 0 if it has none yet, and a bit that says whether its new values
// are written inline from now on.
type nameRef uint32

const inlineValues nameRef = 1

func (r nameRef) id() uint32 { return uint32(r >> 1) }

func (n *argNames) get(sym trace.Sym) nameRef { return nameRef(n.refs[sym].Load()) }

// define gives sym an id and appends the definition to defs.
func (n *argNames) define(defs []byte, sym trace.Sym, name string) (nameRef, []byte) {
	n.last++
	n.refs[sym].Store(n.last << 1)
	name = cmp.Or(name, "_") // trace_processor rejects an argument without a name
	return nameRef(n.last << 1), appendDefinition(defs, internedArgNames, n.last, name)
}

// inline makes new values of the argument sym be written inline.
func (n *argNames) inline(sym trace.Sym) { n.refs[sym].Or(uint32(inlineValues)) }

func appendDefinition(b []byte, field int, id uint32, s string) []byte {
	b, at := open(b, field)
	b = appendUint(b, internedIID, uint64(id))
	b = appendString(b, internedString, validUTF8(s))
	return shut(b, at)
}

// validUTF8 returns s as a valid protobuf string: each run of invalid bytes becomes one U+FFFD.
func validUTF8(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
