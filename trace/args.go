package trace

import (
	"encoding/binary"
	"math"
	"sync"
)

// ArgsID locates one list of arguments in [Args]; 0 is the empty list.
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
	argExtends // the list continues with that of another ArgsID
)

// Args is an append-only arena of argument lists. A list is a byte string of
// (key, kind, value) triples; keys are symbols, values are inline.
//
// Lists are addressed in units of argsAlign bytes, so that 32 bits reach 32 GiB.
//
// Several goroutines may Put at the same time, but none may read meanwhile.
type Args struct {
	mu      sync.Mutex
	blocks  [][]byte
	large   map[ArgsID][]byte // lists that no block can hold
	used    uint64            // bytes in all blocks, their unused ends included
	dropped int
}

const (
	argsAlign     = 8
	argsBlockBits = 20
	argsBlock     = 1 << argsBlockBits // a list never crosses a block
	maxInBlock    = argsBlock - 2*binary.MaxVarintLen64
)

// NewArgs returns an empty arena.
func NewArgs() *Args { return &Args{} }

// Put copies an encoded list and returns its id. When the arena's 32 GiB are
// full the list is left out and counted by [Args.Dropped].
func (a *Args) Put(list []byte) ArgsID {
	if len(list) == 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(list) > maxInBlock {
		id := a.place(nil)
		if id != 0 {
			if a.large == nil {
				a.large = map[ArgsID][]byte{}
			}
			a.large[id] = append([]byte(nil), list...)
		}
		return id
	}
	return a.place(list)
}

// place writes a length-prefixed list into the last block or a new one.
func (a *Args) place(list []byte) ArgsID {
	var header [binary.MaxVarintLen64]byte
	h := binary.PutUvarint(header[:], uint64(len(list)))
	if len(a.blocks) == 0 {
		a.blocks = append(a.blocks, make([]byte, argsAlign, argsBlock)) // id 0 is taken
	}
	last := len(a.blocks) - 1
	if len(a.blocks[last])+h+len(list) > argsBlock {
		a.blocks = append(a.blocks, make([]byte, 0, argsBlock))
		last++
	}
	b := a.blocks[last]
	at := uint64(last)<<argsBlockBits + uint64(len(b))
	if at/argsAlign > math.MaxUint32 {
		a.dropped++
		return 0
	}
	b = append(append(b, header[:h]...), list...)
	for len(b)%argsAlign != 0 && len(b) < argsBlock {
		b = append(b, 0)
	}
	a.blocks[last] = b
	a.used = uint64(last)<<argsBlockBits + uint64(len(b))
	return ArgsID(at / argsAlign)
}

// Dropped returns how many lists did not fit into the arena.
func (a *Args) Dropped() int { return a.dropped }

// Size returns the number of bytes in the arena.
func (a *Args) Size() uint64 { return a.used }

// Raw returns the encoded list of id. It must not be modified, and is valid for
// the life of the arena.
func (a *Args) Raw(id ArgsID) []byte {
	if id == 0 {
		return nil
	}
	at := uint64(id) * argsAlign
	b := a.blocks[at>>argsBlockBits][at&(argsBlock-1):]
	n, h := binary.Uvarint(b)
	if n == 0 {
		return a.large[id]
	}
	return b[h : h+int(n)]
}

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

// Find returns the first argument of id with the given key.
func (a *Args) Find(id ArgsID, key Sym) (Arg, bool) {
	for arg := range a.All(id) {
		if arg.Key == key {
			return arg, true
		}
	}
	return Arg{}, false
}

// An Arg is one argument.
type Arg struct {
	Key  Sym
	Kind ArgKind
	num  uint64
	data []byte
}

// Bytes returns the text of an ArgString.
func (a Arg) Bytes() []byte { return a.data }

// Int returns the value of an ArgInt.
func (a Arg) Int() int64 { return int64(a.num) }

// Uint returns the value of an ArgUint.
func (a Arg) Uint() uint64 { return a.num }

// Float returns the value of an ArgFloat.
func (a Arg) Float() float64 { return math.Float64frombits(a.num) }

// Bool returns the value of an ArgBool.
func (a Arg) Bool() bool { return a.num != 0 }

// Elems yields the elements of an ArgArray (their keys are 0) or the entries
// of an ArgDict.
func (a Arg) Elems(yield func(Arg) bool) {
	for list := a.data; len(list) > 0; {
		var e Arg
		e, list = decodeArg(list)
		if !yield(e) {
			return
		}
	}
}

func decodeArg(b []byte) (Arg, []byte) {
	key, n := binary.Uvarint(b)
	a := Arg{Key: Sym(key), Kind: ArgKind(b[n])}
	b = b[n+1:]
	switch a.Kind {
	case ArgString, ArgArray, ArgDict:
		size, n := binary.Uvarint(b)
		a.data, b = b[n:n+int(size)], b[n+int(size):]
	case ArgInt:
		v, n := binary.Varint(b)
		a.num, b = uint64(v), b[n:]
	case ArgFloat:
		a.num, b = binary.LittleEndian.Uint64(b), b[8:]
	default:
		a.num, n = binary.Uvarint(b)
		b = b[n:]
	}
	return a, b
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

// Bool appends a truth value.
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

// All yields the arguments of an encoded list, without those it extends.
func (l ArgList) All() func(yield func(Arg) bool) {
	return Arg{data: l}.Elems
}
