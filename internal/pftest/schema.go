package pftest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// eventArgs is the field of a TrackEvent that holds typed arguments.
const eventArgs = 4715

// declared is an argument that a file writes as a field of a message.
type declared struct {
	name     string
	kind     uint64 // its FieldDescriptorProto.Type
	repeated bool
	typeName string
	wire     rule
}

// schema reads the ExtensionDescriptor that declares typed arguments.
func (d *decoder) schema(b []byte) error {
	if d.typed != nil {
		return errors.New("arguments are declared twice")
	}
	d.typed, d.words = map[protowire.Number]declared{}, map[uint64]string{}
	for range 2 { // an ExtensionDescriptor, and its FileDescriptorSet
		only, err := parse("ExtensionDescriptor", b, rules{1: bytes})
		if err != nil || len(only) != 1 {
			return fmt.Errorf("not one file of descriptors: %w", err)
		}
		b = only[0].data
	}
	file, err := parse("FileDescriptorProto", b, rules{1: bytes, 2: bytes, 4: bytes, 5: bytes, 7: bytes})
	if err != nil {
		return err
	}
	for _, f := range file {
		switch f.number {
		case 2:
			if string(f.data) != "sgtrace" {
				err = fmt.Errorf("package %q", f.data)
			}
		case 4:
			err = d.declareArgs(f.data)
		case 5:
			err = d.declareWords(f.data)
		case 7:
			var e declared
			var number protowire.Number
			e, number, err = declaration(f.data)
			if err == nil && (e.name != "debug" || number != eventArgs || e.kind != 11 || e.typeName != ".sgtrace.Args") {
				err = fmt.Errorf("extension %+v", e)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) declareArgs(b []byte) error {
	fields, err := parse("DescriptorProto", b, rules{1: bytes, 2: messages})
	if err != nil {
		return err
	}
	for _, f := range fields[1:] {
		x, number, err := declaration(f.data)
		if err != nil {
			return err
		}
		if _, twice := d.typed[number]; twice || x.name == "" || strings.ContainsAny(x.name, ".[]") {
			return fmt.Errorf("argument %q with the number %d", x.name, number)
		}
		d.typed[number] = x
	}
	return nil
}

// declaration reads a FieldDescriptorProto.
func declaration(b []byte) (x declared, number protowire.Number, err error) {
	fields, err := parse("FieldDescriptorProto", b, rules{1: bytes, 2: bytes, 3: varint, 4: varint, 5: varint, 6: bytes, 8: bytes})
	packed := false
	for _, f := range fields {
		switch f.number {
		case 1:
			x.name, err = text(f.data)
		case 3:
			number = protowire.Number(f.num)
		case 4:
			x.repeated = f.num == 3
		case 5:
			x.kind = f.num
		case 6:
			x.typeName = string(f.data)
		case 8:
			packed = string(f.data) == "\x10\x01"
		}
	}
	x.wire = map[uint64]rule{1: fixed, 3: varint, 9: bytes, 11: bytes, 14: varint}[x.kind]
	if x.repeated {
		x.wire = messages
	}
	if x.wire.wire == 0 && x.kind != 3 && x.kind != 14 || packed != (x.repeated && x.kind != 9) {
		err = errors.Join(err, fmt.Errorf("field %q of type %d", x.name, x.kind))
	}
	return x, number, err
}

func (d *decoder) declareWords(b []byte) error {
	fields, err := parse("EnumDescriptorProto", b, rules{1: bytes, 2: messages})
	if err != nil {
		return err
	}
	for _, f := range fields[1:] {
		value, err := parse("EnumValueDescriptorProto", f.data, rules{1: bytes, 2: varint})
		if err != nil {
			return err
		}
		if len(value) != 2 {
			return errors.New("a word without a number")
		}
		d.words[value[1].num] = string(value[0].data)
	}
	return nil
}

// typedArgs adds typed arguments to args.
func (d *decoder) typedArgs(args map[string]any, b []byte) error {
	allowed := rules{}
	for number, x := range d.typed {
		allowed[number] = x.wire
	}
	fields, err := parse("Args", b, allowed)
	if err != nil {
		return err
	}
	for _, f := range fields {
		x := d.typed[f.number]
		if _, twice := args[x.name]; twice && !(x.repeated && x.kind == 9) {
			return fmt.Errorf("argument %q repeats", x.name)
		}
		if !x.repeated {
			args[x.name], err = d.typedValue(x, f.num, f.data)
		} else if x.kind == 9 {
			array, _ := args[x.name].([]any)
			var v any
			v, err = text(f.data)
			args[x.name] = append(array, v)
		} else {
			args[x.name], err = d.packed(x, f.data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packed reads the varints of an array.
func (d *decoder) packed(x declared, b []byte) (array []any, err error) {
	for len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		one, err := d.typedValue(x, v, nil)
		if err != nil {
			return nil, err
		}
		array = append(array, one)
	}
	if array == nil {
		err = fmt.Errorf("argument %q has no elements", x.name)
	}
	return array, err
}

func (d *decoder) typedValue(x declared, num uint64, data []byte) (any, error) {
	switch x.kind {
	case 1:
		return math.Float64frombits(num), nil
	case 3:
		return int64(num), nil
	case 9:
		return text(data)
	}
	word, ok := d.words[num]
	if !ok {
		return nil, fmt.Errorf("word %d is not declared", num)
	}
	return word, nil
}

// pathless makes a name what trace_processor makes of it, where dots and brackets are
// parts of a path.
func pathless(name string) string {
	return strings.NewReplacer(".", "_", "[", "_", "]", "_").Replace(name)
}
