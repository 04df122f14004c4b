package trace

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// ArgsID refers to a list of arguments in [Args]; 0 is the empty list.
type ArgsID uint32

// ArgKind is the type of an argument's value.
type ArgKind uint8

const (
	ArgString ArgKind = iota + 1
	ArgInt
	ArgUint
	ArgFloat
	ArgBool
	ArgArray
	ArgDict
	argExtends // the list continues with the list of another ArgsID
)

// All yields the arguments of id in order. The yielded values alias the arena.
func (a *Args) All(id ArgsID) func(yield func(Arg) bool) {
	return func(yield func(Arg) bool) {
		for id != 0 {
			list := a.Raw(id)
			id = 0
			for len(list) > 0 {
				var arg Arg
				arg, list = decodeArg(list)
				if arg.Kind == argExtends {
					id = ArgsID(arg.num)
					continue
				}
				if !yield(arg) {
					return
				}
			}
		}
	}
}

// Next decodes the first argument of list, which must not be empty, and returns the rest. list is the
// result of [Args.Raw] or of an earlier Next. Walking a list this way is cheaper than [Args.All], for loops
// that dominate a command's run time.
func (a *Args) Next(list []byte) (arg Arg, rest []byte) {
	arg, rest = decodeArg(list)
	for arg.Kind == argExtends {
		arg, rest = decodeArg(a.Raw(ArgsID(arg.num)))
	}
	return arg, rest
}

// Find returns the first argument of id with the given key.
func (a *Args) Find(id ArgsID, key Sym) (Arg, bool) {
	for arg := range a.All(id) {
		if arg.Key == key {
			return arg, true
		}
	}
	return Arg{}, false
}

// An Arg is one argument. At 32 bytes, the compiler keeps it in registers, which makes walking a list twice
// as fast; with a slice in place of the string, it would have 40.
type Arg struct {
	Key  Sym
	Kind ArgKind
	num  uint64
	data string // aliases the arena
}

// Bytes returns the text of an ArgString, or the encoded elements of an ArgArray or ArgDict. It must not be
// modified.
func (a Arg) Bytes() []byte { return unsafe.Slice(unsafe.StringData(a.data), len(a.data)) }

// Int returns the value of an ArgInt.
func (a Arg) Int() int64 { return int64(a.num) }

// Uint returns the value of an ArgUint.
func (a Arg) Uint() uint64 { return a.num }

// Float returns the value of an ArgFloat.
func (a Arg) Float() float64 { return math.Float64frombits(a.num) }

// Bool returns the value of an ArgBool.
func (a Arg) Bool() bool { return a.num != 0 }

// Elems yields the elements of an ArgArray, whose keys are 0, or the entries of an ArgDict.
func (a Arg) Elems(yield func(Arg) bool) {
	for list := a.Bytes(); len(list) > 0; {
		var e Arg
		e, list = decodeArg(list)
		if !yield(e) {
			return
		}
	}
}

// alias returns b as a string without copying it.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func decodeArg(b []byte) (Arg, []byte) {
	key, n := uvarint(b)
	a := Arg{Key: Sym(key), Kind: ArgKind(b[n])}
	b = b[n+1:]
	if a.Kind == ArgFloat {
		a.num = binary.LittleEndian.Uint64(b)
		return a, b[8:]
	}
	a.num, n = uvarint(b)
	b = b[n:]
	switch a.Kind {
	case ArgInt:
		a.num = a.num>>1 ^ -(a.num & 1) // zigzag, as in [binary.Varint]
	case ArgString, ArgArray, ArgDict:
		a.data, b = alias(b[:a.num]), b[a.num:]
	}
	return a, b
}

// uvarint is [binary.Uvarint] without a branch per byte, since processors predict the number of bytes
// poorly.
func uvarint(b []byte) (v uint64, n int) {
	if b[0] < 1<<7 {
		return uint64(b[0]), 1
	}
	if len(b) < 8 {
		return binary.Uvarint(b)
	}
	v = binary.LittleEndian.Uint64(b)
	last := ^v & 0x8080808080808080 // its lowest set bit is in the last byte
	if last == 0 {
		return binary.Uvarint(b)
	}
	v &= (last - 1) & 0x7f7f7f7f7f7f7f7f
	v = v&0x007f007f007f007f | v>>1&(0x007f007f007f007f<<7)
	v = v&0x00003fff00003fff | v>>2&(0x00003fff00003fff<<14)
	v = v&0x0fffffff | v>>4&(0x0fffffff<<28)
	return v, bits.TrailingZeros64(last)/8 + 1
}

// ArgList encodes a list of arguments by appending to a byte slice. The zero
// value is an empty list.
type ArgList []byte

func (l ArgList) head(key Sym, kind ArgKind) ArgList {
	return append(binary.AppendUvarint(l, uint64(key)), byte(kind))
}

// Bytes appends a string.
func (l ArgList) Bytes(key Sym, v []byte) ArgList {
	l = binary.AppendUvarint(l.head(key, ArgString), uint64(len(v)))
	return append(l, v...)
}

// String appends a string.
func (l ArgList) String(key Sym, v string) ArgList {
	l = binary.AppendUvarint(l.head(key, ArgString), uint64(len(v)))
	return append(l, v...)
}

// Int appends a signed integer.
func (l ArgList) Int(key Sym, v int64) ArgList {
	return binary.AppendVarint(l.head(key, ArgInt), v)
}

// Uint appends an unsigned integer.
func (l ArgList) Uint(key Sym, v uint64) ArgList {
	return binary.AppendUvarint(l.head(key, ArgUint), v)
}

// Float appends a floating-point number.
func (l ArgList) Float(key Sym, v float64) ArgList {
	return binary.LittleEndian.AppendUint64(l.head(key, ArgFloat), math.Float64bits(v))
}

// Bool appends a boolean.
func (l ArgList) Bool(key Sym, v bool) ArgList {
	var n uint64
	if v {
		n = 1
	}
	return binary.AppendUvarint(l.head(key, ArgBool), n)
}

// Array appends an array; elems holds its elements, encoded with key 0.
func (l ArgList) Array(key Sym, elems ArgList) ArgList {
	l = binary.AppendUvarint(l.head(key, ArgArray), uint64(len(elems)))
	return append(l, elems...)
}

// Ints appends an array of integers.
func (l ArgList) Ints(key Sym, values ...int64) ArgList {
	var elems ArgList
	for _, v := range values {
		elems = elems.Int(0, v)
	}
	return l.Array(key, elems)
}

// Dict appends a dictionary with the given entries.
func (l ArgList) Dict(key Sym, entries ArgList) ArgList {
	l = binary.AppendUvarint(l.head(key, ArgDict), uint64(len(entries)))
	return append(l, entries...)
}

// Extend ends the list with all arguments of id, without copying them.
func (l ArgList) Extend(id ArgsID) ArgList {
	if id == 0 {
		return l
	}
	return binary.AppendUvarint(l.head(0, argExtends), uint64(id))
}

// All yields the arguments of an encoded list, without those of the list that it extends.
func (l ArgList) All(yield func(Arg) bool) {
	Arg{data: alias(l)}.Elems(yield)
}

// MapText replaces every text in the arguments of all events of t, at any depth, by f(key, text). key is
// the name of the argument or entry that holds the text.
func MapText(t *Trace, f func(key, text string) string) {
	m := textMapper{old: t.Args, names: t.Syms.Names(), f: f}
	t.Args = NewArgs()
	t.Subjects = slices.Clone(t.Subjects) // shared with other windows of the same trace
	m.put = t.Args.Appender()
	for i := range t.Slices {
		t.Slices[i].Args = m.list(t.Slices[i].Args)
	}
	for i := range t.Instants {
		t.Instants[i].Args = m.list(t.Instants[i].Args)
	}
	for i := range t.Subjects {
		t.Subjects[i].Args = m.list(t.Subjects[i].Args)
	}
}

type textMapper struct {
	old   *Args
	names []string
	put   *ArgsAppender
	f     func(key, text string) string
	buf   ArgList
}

// list returns the mapped list of id. A list that it extends is copied into it.
func (m *textMapper) list(id ArgsID) ArgsID {
	if id == 0 {
		return 0
	}
	m.buf = m.buf[:0]
	for a := range m.old.All(id) {
		m.buf = m.add(m.buf, a, a.Key)
	}
	return m.put.Put(m.buf)
}

// add appends an argument named key.
func (m *textMapper) add(l ArgList, a Arg, key Sym) ArgList {
	switch a.Kind {
	case ArgString:
		return l.String(a.Key, m.f(m.names[key], string(a.Bytes())))
	case ArgInt:
		return l.Int(a.Key, a.Int())
	case ArgUint:
		return l.Uint(a.Key, a.Uint())
	case ArgFloat:
		return l.Float(a.Key, a.Float())
	case ArgBool:
		return l.Bool(a.Key, a.Bool())
	}
	var inner ArgList
	for e := range a.Elems {
		of := key
		if a.Kind == ArgDict {
			of = e.Key
		}
		inner = m.add(inner, e, of)
	}
	if a.Kind == ArgDict {
		return l.Dict(a.Key, inner)
	}
	return l.Array(a.Key, inner)
}
