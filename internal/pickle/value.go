package pickle

import "math"

// Kind is the type of a value.
type Kind uint8

const (
	Missing Kind = iota // there is no such value
	None
	Bool
	Int   // an int64
	Uint  // above the largest int64
	Big   // an integer of more than 64 bits, whose value is lost
	Float // a float64
	Text
	Bytes
	Long // a text, or bytes, above Options.LongText: only the length is known
	List
	Tuple
	Dict
	Set
	Class  // or a function, by its name
	Object // of a class, with arguments and state
	taken  // by Options.Take
)

// A Value is one of a pickle. The zero value is one that is missing; all methods work on it.
type Value struct {
	Kind Kind
	bits uint64
	node *node
}

// A node is the part of a value that others may refer to.
type node struct {
	text  string  // of Text and Bytes; of a class, its name
	items []Value // of a list; keys and values of a dict; of an object the class, the arguments, and the state
	taken int     // items of a list that Take took
	// held and kept are what the reader held and kept when the dict was begun.
	held, kept int64
}

// Int returns an integer; a bool is none.
func (v Value) Int() (n int64, ok bool) { return int64(v.bits), v.Kind == Int }

// Int64 returns an integer, and otherwise of any other value.
func (v Value) Int64(otherwise int64) int64 {
	if v.Kind == Int {
		return int64(v.bits)
	}
	return otherwise
}

// Uint64 returns an integer that is not negative, such as an address; 0 of any other value.
func (v Value) Uint64() uint64 {
	if v.Kind == Uint || v.Kind == Int && int64(v.bits) >= 0 {
		return v.bits
	}
	return 0
}

// Float64 returns a number; an integer is one, too.
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

// Text returns a text, or bytes; "" of any other value.
func (v Value) Text() string {
	if v.Kind == Text || v.Kind == Bytes {
		return v.node.text
	}
	return ""
}

// Len returns the number of items of a list, a tuple, or a set, without those that were taken; of
// pairs in a dict; of bytes in a text, known or not.
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

// Items returns those of a list, a tuple, or a set, without those that were taken; of a dict, the
// keys, each followed by its value.
func (v Value) Items() []Value {
	switch v.Kind {
	case List, Tuple, Set, Dict:
		return v.node.items
	}
	return nil
}

// Get returns what a dict, or the dict that is the state of an object, has of a key.
func (v Value) Get(key string) Value {
	if v.Kind == Object {
		v = v.State()
	}
	if v.Kind != Dict {
		return Value{}
	}
	// The last one counts, as in a dict.
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

// Class names a class, or that of an object, with its module: "torch.FloatStorage".
func (v Value) Class() string {
	switch v.Kind {
	case Class:
		return v.node.text
	case Object:
		return v.node.items[0].Class()
	}
	return ""
}

// Args returns the arguments that an object was made with, usually a tuple.
func (v Value) Args() Value {
	if v.Kind == Object {
		return v.node.items[1]
	}
	return Value{}
}

// State returns the value that an object was given after it was made, usually a dict; it is missing if it was
// given nothing.
func (v Value) State() Value {
	if v.Kind == Object {
		return v.node.items[2]
	}
	return Value{}
}

// Key is equal for values that are the same object; nil is of values that are none.
func (v Value) Key() any {
	if v.node == nil {
		return nil
	}
	return v.node
}
