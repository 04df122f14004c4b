package perfetto

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// maxValues is the number of distinct strings of one argument past which
	// they are taken for texts that do not repeat, and written inline.
	maxValues = 1 << 10
	// minValue is the length of the shortest string to intern; an id takes as
	// much room as what is shorter.
	minValue = 3
)

// values interns the string values of arguments, each argument for itself. One
// goroutine adds while others look up, without locks: a value never changes
// once it is in the table, and a table that is full gives way to a larger one.
type values struct {
	seed  maphash.Seed
	table atomic.Pointer[[]atomic.Pointer[value]] // open addressing, a power of two
	last  uint32
	count []uint32 // values of each argument, by its name's id
}

// value is one interned string. Those that belong to a subject are a
// vocabulary of their own: all of them are interned, because they repeat.
type value struct {
	text   string
	name   uint32 // id of the argument's name
	id     uint32
	shared bool
}

func newValues() *values {
	v := &values{seed: maphash.MakeSeed()}
	table := make([]atomic.Pointer[value], 1<<8)
	v.table.Store(&table)
	return v
}

// slot returns a value and its place in the table; nil and the empty place where it
// would be, if it is not there. Another value may be in that place by the time that
// somebody looks again.
func (v *values) slot(table []atomic.Pointer[value], name uint32, s []byte, shared bool) (*value, *atomic.Pointer[value]) {
	mask := uint64(len(table) - 1)
	for i := maphash.Bytes(v.seed, s) + uint64(name)*0x9e3779b97f4a7c15; ; i++ {
		at := &table[i&mask]
		if x := at.Load(); x == nil || x.name == name && x.shared == shared && x.text == string(s) {
			return x, at
		}
	}
}

// get returns the id of the value s, 0 if it has none.
func (v *values) get(name uint32, s []byte, shared bool) uint32 {
	if x, _ := v.slot(*v.table.Load(), name, s, shared); x != nil {
		return x.id
	}
	return 0
}

// define gives the value s an id and appends the definition to defs. more says
// whether other values of this argument should be interned, too.
func (v *values) define(defs []byte, name uint32, s []byte, shared bool) (id uint32, more bool, _ []byte) {
	table := *v.table.Load()
	if int(v.last) >= len(table)/2 {
		table = v.grow(table)
	}
	v.last++
	x := &value{text: string(s), name: name, id: v.last, shared: shared}
	_, at := v.slot(table, name, s, shared)
	at.Store(x)
	if !shared {
		for len(v.count) <= int(name) {
			v.count = append(v.count, 0)
		}
		v.count[name]++
	}
	more = shared || v.count[name] < maxValues
	return x.id, more, appendDefinition(defs, internedArgStrings, x.id, x.text)
}

// grow replaces the table by one of twice its size.
func (v *values) grow(old []atomic.Pointer[value]) []atomic.Pointer[value] {
	table := make([]atomic.Pointer[value], 2*len(old))
	for i := range old {
		if x := old[i].Load(); x != nil {
			_, at := v.slot(table, x.name, []byte(x.text), x.shared)
			at.Store(x)
		}
	}
	v.table.Store(&table)
	return table
}
