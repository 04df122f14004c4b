package pickle

import (
	"errors"
	"fmt"
)

// object executes the opcodes that import or call something in Python: here they make objects with a name.
func (d *decoder) object(op byte) {
	switch op {
	case opGlobal:
		d.global()
	case opStackGlobal:
		name, module := d.pop(), d.pop()
		if name.Kind != Text || module.Kind != Text {
			d.in.fail(errors.New("names a class by something that is not text"))
			return
		}
		d.class(module.Text(), name.Text())
	case opPersID:
		d.make(persistent(), Value{Kind: Text, node: &node{text: string(d.in.line())}})
	case opBinPersID:
		d.make(persistent(), d.pop())
	case opReduce, opNewObj, opNewObjEx:
		d.call(op)
	case opObj, opInst:
		d.instance(op)
	case opBuild:
		d.build()
	default:
		d.in.fail(fmt.Errorf("has the opcode %#x, which is unknown", op))
	}
}

// Persistent is the class of a reference to something outside the pickle. The reference is in its arguments;
// PyTorch refers to the storage of a tensor that way.
const Persistent = "persistent id"

func persistent() Value { return Value{Kind: Class, node: &node{text: Persistent}} }

// class pushes a class, if Options.Known accepts it.
func (d *decoder) class(module, name string) {
	full := module + "." + name
	if d.opt.Known != nil && !d.opt.Known(full) {
		d.in.fail(fmt.Errorf("names %q, which such a file does not have", full))
	}
	d.pushNode(Class, d.textNode(d.in.text([]byte(full))), len(full))
}

// global reads the two lines of a class: module and name.
func (d *decoder) global() {
	module := string(d.in.line())
	d.class(module, string(d.in.line()))
}

// make pushes an object.
func (d *decoder) make(class, args Value) {
	d.pushNode(Object, &node{items: []Value{class, args, {}}}, 3*valueSize)
}

func (d *decoder) call(op byte) {
	args := d.pop()
	if op == opNewObjEx { // args has the keyword arguments; the positional ones are below it
		args = d.pop()
	}
	class := d.pop()
	if class.Kind != Class && class.Kind != Object {
		d.in.fail(errors.New("calls something that is not a function"))
		return
	}
	if class.Kind == Object { // a method, or a function that a function returned
		class = class.node.items[0]
	}
	if makers[class.node.text] && args.At(0).Kind == Class {
		class = args.At(0)
	}
	d.make(class, args)
}

// makers are functions that make an object of the class in their first argument.
var makers = map[string]bool{"copy_reg._reconstructor": true, "copyreg._reconstructor": true, "copyreg.__newobj__": true}

// instance makes an object of the values above the mark.
func (d *decoder) instance(op byte) {
	if op == opInst {
		if d.global(); d.in.err == nil {
			class := d.pop()
			d.make(class, tuple(d.popMark()))
		}
		return
	}
	items := d.popMark()
	if len(items) == 0 || items[0].Kind != Class {
		d.in.fail(errors.New("makes an object without a class"))
		return
	}
	d.make(items[0], tuple(items[1:]))
}

func tuple(items []Value) Value {
	return Value{Kind: Tuple, node: &node{items: append([]Value(nil), items...)}}
}

// build sets the state of an object.
func (d *decoder) build() {
	state := d.pop()
	switch to := d.top(); {
	case to.Kind == Object:
		to.node.items[2] = state
	case to.Kind != taken && to.Kind != Dict && to.Kind != List:
		d.in.fail(errors.New("gives a state to something that is not an object"))
	}
}
