package pickle

import (
	"errors"
	"fmt"
)

// object does the opcodes that would import or call something: they make objects of a name.
func (d *decoder) object(op byte) error {
	switch op {
	case opGlobal:
		return d.global()
	case opStackGlobal:
		return d.stackGlobal()
	case opPersID:
		line, err := d.in.line()
		if err != nil {
			return err
		}
		return d.make(persistent(), Value{Kind: Text, node: &node{text: string(line)}})
	case opBinPersID:
		id, err := d.pop()
		if err != nil {
			return err
		}
		return d.make(persistent(), id)
	case opReduce, opNewObj, opNewObjEx:
		return d.call(op)
	case opObj, opInst:
		return d.instance(op)
	case opBuild:
		return d.build()
	}
	return fmt.Errorf("has the opcode %#x, which is unknown", op)
}

// Persistent is the class of what a pickle refers to and does not hold: its arguments are the
// reference, by which PyTorch names the storage of a tensor.
const Persistent = "persistent id"

func persistent() Value { return Value{Kind: Class, node: &node{text: Persistent}} }

// class pushes a class, if it may be named.
func (d *decoder) class(module, name string) error {
	full := module + "." + name
	if d.opt.Known != nil && !d.opt.Known(full) {
		return fmt.Errorf("names %q, which such a file does not have", full)
	}
	d.pushNode(Class, d.textNode(d.in.text([]byte(full))), len(full))
	return nil
}

// names reads the two lines of a class.
func (d *decoder) names() (module, name string, err error) {
	line, err := d.in.line()
	if err != nil {
		return "", "", err
	}
	module = string(line)
	line, err = d.in.line()
	return module, string(line), err
}

func (d *decoder) global() error {
	module, name, err := d.names()
	if err != nil {
		return err
	}
	return d.class(module, name)
}

func (d *decoder) stackGlobal() error {
	name, err := d.pop()
	if err != nil {
		return err
	}
	module, err := d.pop()
	if err != nil {
		return err
	}
	if name.Kind != Text || module.Kind != Text {
		return errors.New("names a class by something that is not text")
	}
	return d.class(module.Text(), name.Text())
}

// make pushes an object.
func (d *decoder) make(class, args Value) error {
	d.pushNode(Object, &node{items: []Value{class, args, {}}}, 3*valueSize)
	return nil
}

func (d *decoder) call(op byte) error {
	args, err := d.pop()
	if err != nil {
		return err
	}
	if op == opNewObjEx { // args are those with names; those without are below
		if args, err = d.pop(); err != nil {
			return err
		}
	}
	class, err := d.pop()
	if err != nil {
		return err
	}
	if class.Kind != Class && class.Kind != Object {
		return errors.New("calls something that is not a function")
	}
	if class.Kind == Object { // a method, or a function that a function returned
		class = class.node.items[0]
	}
	if makers[class.node.text] && args.At(0).Kind == Class {
		class = args.At(0)
	}
	return d.make(class, args)
}

// makers are functions that make an object of the class that is their first argument.
var makers = map[string]bool{"copy_reg._reconstructor": true, "copyreg._reconstructor": true, "copyreg.__newobj__": true}

// instance makes an object of what is above the mark.
func (d *decoder) instance(op byte) error {
	if op == opInst {
		if err := d.global(); err != nil {
			return err
		}
		class, err := d.pop()
		if err != nil {
			return err
		}
		items, err := d.popMark()
		if err != nil {
			return err
		}
		return d.make(class, tuple(items))
	}
	items, err := d.popMark()
	switch {
	case err != nil:
		return err
	case len(items) == 0 || items[0].Kind != Class:
		return errors.New("makes an object without a class")
	}
	return d.make(items[0], tuple(items[1:]))
}

func tuple(items []Value) Value {
	return Value{Kind: Tuple, node: &node{items: append([]Value(nil), items...)}}
}

// build gives an object its state.
func (d *decoder) build() error {
	state, err := d.pop()
	if err != nil {
		return err
	}
	to, err := d.top()
	switch {
	case err != nil:
		return err
	case to.Kind == Object:
		to.node.items[2] = state
	case to.Kind != taken && to.Kind != Dict && to.Kind != List:
		return errors.New("gives a state to something that is not an object")
	}
	return nil
}
