package perfetto

import (
	"strings"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// dictionary gives the symbols used in one field of InternedData their ids, in
// order of first use: not the numbers of the symbols, which depend on the
// readers' goroutines and are not dense.
type dictionary struct {
	field int
	ids   []uint32 // by symbol; 0 is not used yet
	last  uint32
}

func newDictionary(field, symbols int) dictionary {
	return dictionary{field: field, ids: make([]uint32, symbols)}
}

// id returns the id of sym, named name. On first use it appends the definition
// to defs, which must go into the same packet or an earlier one.
func (d *dictionary) id(sym trace.Sym, name string, defs *[]byte) uint64 {
	if d.ids[sym] == 0 {
		d.last++
		d.ids[sym] = d.last
		*defs = appendDefinition(*defs, d.field, d.last, validUTF8(name))
	}
	return uint64(d.ids[sym])
}

func appendDefinition(b []byte, field int, id uint32, s string) []byte {
	b, at := open(b, field)
	b = appendUint(b, internedIID, uint64(id))
	b = appendString(b, internedString, s)
	return shut(b, at)
}

// maxValues is the number of distinct strings of one argument past which they
// are taken for texts that do not repeat, and written inline.
const maxValues = 1 << 10

// values interns the string values of arguments, each argument for itself. The
// same values in the same order give the same ids.
type values struct {
	keys []map[string]uint32 // by symbol of the argument's name
	full []bool              // likewise: given up
	last uint32
}

func newValues(symbols int) values {
	return values{keys: make([]map[string]uint32, symbols), full: make([]bool, symbols)}
}

// id returns the id of the value s of the argument key, 0 if s is to be written
// inline. keep says that s is known to repeat.
func (v *values) id(key trace.Sym, s []byte, keep bool, defs *[]byte) uint64 {
	if v.full[key] && !keep {
		return 0
	}
	m := v.keys[key]
	if id, ok := m[string(s)]; ok {
		return uint64(id)
	}
	if m == nil {
		m = make(map[string]uint32)
		v.keys[key] = m
	}
	if len(m) >= maxValues && !keep {
		v.full[key] = true
		return 0
	}
	v.last++
	name := string(s)
	m[name] = v.last
	*defs = appendDefinition(*defs, internedArgStrings, v.last, validUTF8(name))
	return uint64(v.last)
}

// validUTF8 returns s as protobuf wants strings: each run of invalid bytes
// becomes one U+FFFD.
func validUTF8(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
