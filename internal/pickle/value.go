package pickle

import "math"

// Kind is the type of a value.
type Kind uint8

const (
	Missing Kind = iota // no such value
	None
	Bool
	Int   // an int64
	Uint  // larger than the largest int64
	Big   // an integer of more than 64 bits, whose value is lost
	Float // a float64
	Text
	Bytes
	Long // a text or bytes longer than Options.LongText: only the length is known
	List
	Tuple
	Dict
	Set
	Class  // or a function, by name
	Object // of a class, with arguments and state
	taken  // by Options.Take
)

// A Value is a value of a pickle. The zero value is a missing one; all methods work on it.
type Value struct {
	Kind Kind
	bits uint64
	node *node
}

// A node is the part of a value that others may refer to.
type node struct {
	text  string  // of Text and Bytes; the name of a class
	items []Value // of a list; alternating keys and values of a dict; class, arguments, and state of an object
	taken int     // number of items of a list that Take took
	// held and kept are those of the decoder when the dict began.
	held, kept int64
}

// Int returns an integer; bools don't count as integers.
func (v Value) Int() (n int64, ok bool) { return int64(v.bits), v.Kind == Int }

// Int64 returns an integer, or otherwise if the value is not one.
func (v Value) Int64(otherwise int64) int64 {
	if v.Kind == Int {
		return int64(v.bits)
	}
	return otherwise
}

// Uint64 returns a non-negative integer, such as an address; 0 for any other value.
func (v Value) Uint64() uint64 {
	if v.Kind == Uint || v.Kind == Int && int64(v.bits) >= 0 {
		return v.bits
	}
	return 0
}

// Float64 returns a float or an integer.
func (v Value) Float64() (x float64, ok bool) {
	switch v.Kind {
	case Float:
		return math.Float64frombits(v.bits), true
	case Int:
		return float64(int64(v.bits)), true
	}
	return 0, false
}

// IsTrue reports whether a value is True.
func (v Value) IsTrue() bool { return v.Kind == Bool && v.bits == 1 }

// Text returns a text, or bytes; "" for any other value.
func (v Value) Text() string {
	if v.Kind == Text || v.Kind == Bytes {
		return v.node.text
	}
	return ""
}

// Len returns the number of items of a list, a tuple, or a set that were not taken; the number of pairs in a
// dict; the number of bytes in a text, even if it is too long to be kept.
func (v Value) Len() int {
	switch v.Kind {
	case List, Tuple, Set:
		return len(v.node.items)
	case Dict:
		return len(v.node.items) / 2
	case Text, Bytes:
		return len(v.node.text)
	case Long:
		return int(v.bits)
	}
	return 0
}

// Taken returns how many items of a list [Options.Take] took.
func (v Value) Taken() int {
	if v.Kind == List {
		return v.node.taken
	}
	return 0
}

// Items returns the items of a list, a tuple, or a set that were not taken; the alternating keys and values of
// a dict.
func (v Value) Items() []Value {
	switch v.Kind {
	case List, Tuple, Set, Dict:
		return v.node.items
	}
	return nil
}

// Get returns the value of a key in a dict, or in the dict that is the state of an object.
func (v Value) Get(key string) Value {
	if v.Kind == Object {
		v = v.State()
	}
	if v.Kind != Dict {
		return Value{}
	}
	// The last pair wins, as in Python.
	for i := len(v.node.items) - 2; i >= 0; i -= 2 {
		if k := v.node.items[i]; k.Kind == Text && k.node.text == key {
			return v.node.items[i+1]
		}
	}
	return Value{}
}

// At returns an item of a list or a tuple.
func (v Value) At(i int) Value {
	if (v.Kind == List || v.Kind == Tuple) && i < len(v.node.items) {
		return v.node.items[i]
	}
	return Value{}
}

// Class returns the name of a class, or of the class of an object, with its module: "torch.FloatStorage".
func (v Value) Class() string {
	switch v.Kind {
	case Class:
		return v.node.text
	case Object:
		return v.node.items[0].Class()
	}
	return ""
}

// Args returns the arguments of the call that made an object, usually a tuple.
func (v Value) Args() Value {
	if v.Kind == Object {
		return v.node.items[1]
	}
	return Value{}
}

// State returns the state that an object was given after it was made, usually a dict; it is missing if there
// was none.
func (v Value) State() Value {
	if v.Kind == Object {
		return v.node.items[2]
	}
	return Value{}
}

// Key returns the same key for values that are the same object; nil for values that are not objects.
func (v Value) Key() any {
	if v.node == nil {
		return nil
	}
	return v.node
}
