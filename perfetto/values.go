package perfetto

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/trace"
)

const (
	// maxValues is the number of distinct strings of one argument past which new ones are assumed not to repeat,
	// and written inline.
	maxValues = 1 << 10
	// minValue is the length of the shortest string to intern; an id takes as much space as a shorter one.
	minValue = 3
)

// values interns the string values of arguments, separately for each argument. One goroutine adds while others
// look up, without locks: a value never changes once it is in the table, and a full table is replaced by a
// larger one.
type values struct {
	seed  maphash.Seed
	table atomic.Pointer[[]atomic.Pointer[value]] // open addressing, a power of two
	n     int
	count []uint32 // values of each argument, by its name's id
}

// value is one interned string.
type value struct {
	text string
	name uint32 // id of the argument's name
	id   uint32
}

// newValues returns a table with room for n values.
func newValues(n int) *values {
	v := &values{seed: maphash.MakeSeed()}
	table := make([]atomic.Pointer[value], 1<<bits.Len(uint(max(2*n, 1<<7))))
	v.table.Store(&table)
	return v
}

// slot returns a value and its slot in the table; if it is missing, nil and the empty slot for it, which may
// have been filled by the time of the next look.
func (v *values) slot(table []atomic.Pointer[value], name uint32, s []byte) (*value, *atomic.Pointer[value]) {
	mask := uint64(len(table) - 1)
	for i := maphash.Bytes(v.seed, s) + uint64(name)*0x9e3779b97f4a7c15; ; i++ {
		at := &table[i&mask]
		if x := at.Load(); x == nil || x.name == name && x.text == string(s) {
			return x, at
		}
	}
}

// get returns the id of the value s, 0 if it has none.
func (v *values) get(name uint32, s []byte) uint32 {
	if x, _ := v.slot(*v.table.Load(), name, s); x != nil {
		return x.id
	}
	return 0
}

// add adds the value s with its id. It returns its text, and the number of values that the argument has now.
func (v *values) add(name uint32, s []byte, id uint32) (text string, count uint32) {
	table := *v.table.Load()
	if v.n >= len(table)/2 {
		table = v.grow(table)
	}
	v.n++
	x := &value{text: string(s), name: name, id: id}
	_, at := v.slot(table, name, s)
	at.Store(x)
	for len(v.count) <= int(name) {
		v.count = append(v.count, 0)
	}
	v.count[name]++
	return x.text, v.count[name]
}

// grow replaces the table by one of twice its size.
func (v *values) grow(old []atomic.Pointer[value]) []atomic.Pointer[value] {
	table := make([]atomic.Pointer[value], 2*len(old))
	for i := range old {
		if x := old[i].Load(); x != nil {
			_, at := v.slot(table, x.name, []byte(x.text))
			at.Store(x)
		}
	}
	v.table.Store(&table)
	return table
}

// composites remembers the encodings of arrays and dictionaries. There are few distinct ones, mostly shapes of
// operators and grids of kernels, and looking one up costs a fraction of encoding it. Ids never change, so
// neither do the encoded bytes.
type composites struct {
	seed maphash.Seed
	slot []composite // a cache: new entries displace old ones
}

type composite struct {
	name  uint32 // id of the argument's name, or typedComposite and the number of its field; 0 if empty
	kind  trace.ArgKind
	split uint16
	text  []byte // the raw value, and its encoding from split on
}

const (
	compositeSlots = 1 << 11
	// maxComposite is the length of the longest raw value to remember: a cache
	// holds a few megabytes at most.
	maxComposite = 256
	// typedComposite marks fields of typed arguments.
	typedComposite = 1 << 31
)

func newComposites() composites {
	return composites{maphash.MakeSeed(), make([]composite, compositeSlots)}
}

// find returns the slot for the value of an argument, and whether the value is in it. Values that are too long
// have no slot.
func (c *composites) find(a trace.Arg, name uint32) (_ *composite, known bool) {
	raw := a.Bytes()
	if len(raw) > maxComposite {
		return nil, false
	}
	hash := maphash.Bytes(c.seed, raw) + uint64(name)
	slot := &c.slot[hash%compositeSlots]
	return slot, slot.name == name && slot.kind == a.Kind && string(slot.text[:slot.split]) == string(raw)
}

// keep stores the encoding of an argument's value in the slot.
func (c *composite) keep(a trace.Arg, name uint32, encoded []byte) {
	if c == nil {
		return
	}
	raw := a.Bytes()
	c.name, c.kind, c.split = name, a.Kind, uint16(len(raw))
	c.text = append(append(c.text[:0], raw...), encoded...)
}

// encoded returns the encoding of the value.
func (c *composite) encoded() []byte { return c.text[c.split:] }

// composite appends the fields that hold an array or a dictionary.
func (e *encoder) composite(b []byte, a trace.Arg, r root) []byte {
	c, known := e.composites.find(a, r.name.id())
	if known {
		return append(b, c.encoded()...)
	}
	before := len(b)
	b = e.value(b, a, r)
	if !e.missing {
		c.keep(a, r.name.id(), b[before:])
	}
	return b
}
