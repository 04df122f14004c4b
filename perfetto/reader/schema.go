package reader

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// A schema declares the arguments that are fields of one message, instead of
// DebugAnnotations, as an extension of TrackEvent called "debug".
type schema struct {
	args  map[protowire.Number]declaration
	names []string // of args
	rules []rule
	words map[uint64][]byte // of the only enumeration
}

// A declaration is that of one field.
type declaration struct {
	name     string
	kind     uint64 // one of the FieldDescriptorProto types below
	repeated bool
}

const (
	kindDouble = 1
	kindInt64  = 3
	kindString = 9
	kindEnum   = 14
)

// read reads an ExtensionDescriptor and returns the names of arguments.
func (s *schema) read(b []byte) ([]string, error) {
	if s.args != nil {
		return nil, errors.New("arguments are declared twice")
	}
	s.args, s.words = map[protowire.Number]declaration{}, map[uint64][]byte{}
	set, err := fields(nil).parse(b, []rule{{1, bytesField}})
	if err != nil {
		return nil, err
	}
	files, err := set.message(1, []rule{{1, bytesField}})
	if err != nil {
		return nil, err
	}
	file, err := files.message(1, []rule{{1, bytesField}, {2, bytesField}, {4, bytesField}, {5, bytesField}, {7, bytesField}})
	if err != nil {
		return nil, err
	}
	name, _ := file.text(1)
	if in, _ := file.text(2); name != "sgtrace.proto" || in != "sgtrace" {
		return nil, fmt.Errorf("file %q of package %q", name, in)
	}
	if err := s.message(file); err != nil {
		return nil, err
	}
	if err := s.enumeration(file); err != nil {
		return nil, err
	}
	extension, err := file.message(7, fieldRules)
	if err != nil {
		return nil, err
	}
	name, _ = extension.text(1)
	extends, _ := extension.text(2)
	of, _ := extension.text(6)
	if name != "debug" || extends != ".perfetto.protos.TrackEvent" || extension.number(3) != eventArgs || extension.number(4) != 1 || extension.number(5) != 11 || of != ".sgtrace.Args" {
		return nil, fmt.Errorf("field %d of %s is %q, a %s", extension.number(3), extends, name, of)
	}
	return s.names, nil
}

var fieldRules = []rule{{1, bytesField}, {2, bytesField}, {3, varintField}, {4, varintField}, {5, varintField}, {6, bytesField}, {8, bytesField}}

func (s *schema) message(file fields) error {
	message, err := file.message(4, []rule{{1, bytesField}, {2, repeatedBytes}})
	if err != nil {
		return err
	}
	if name, _ := message.text(1); name != "Args" {
		return fmt.Errorf("message %q", name)
	}
	for _, x := range message {
		if x.number != 2 {
			continue
		}
		f, err := fields(nil).parse(x.data, fieldRules)
		if err == nil {
			err = s.declare(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// declare reads the declaration of one argument.
func (s *schema) declare(f fields) (err error) {
	number := protowire.Number(f.number(3))
	d := declaration{kind: f.number(5), repeated: f.number(4) == 3}
	if d.name, err = f.text(1); err != nil {
		return err
	}
	if _, twice := s.args[number]; twice || number == 0 || !d.repeated && f.number(4) != 1 || d.repeated && d.kind == kindDouble {
		return fmt.Errorf("argument %q is field %d, as another one is, or neither single nor repeated", d.name, number)
	}
	if d.name == "" || d.name != Pathless(d.name) {
		return fmt.Errorf("argument %q has no name, or one that reads as a path", d.name)
	}
	packed, enum := "", ""
	wire := form{protowire.VarintType, d.repeated}
	switch d.kind {
	case kindDouble:
		wire.wire = protowire.Fixed64Type
	case kindString:
		wire.wire = protowire.BytesType
	case kindInt64, kindEnum:
		if d.repeated {
			wire, packed = bytesField, "\x10\x01"
		}
		if d.kind == kindEnum {
			enum = ".sgtrace.Word"
		}
	default:
		return fmt.Errorf("argument %q is of type %d", d.name, d.kind)
	}
	options, _ := f.text(8)
	if of, _ := f.text(6); of != enum || options != packed {
		return fmt.Errorf("argument %q has the type %q and the options %q", d.name, of, options)
	}
	s.args[number], s.names, s.rules = d, append(s.names, d.name), append(s.rules, rule{number, wire})
	return nil
}

func (s *schema) enumeration(file fields) error {
	if file.find(5) == nil {
		return nil
	}
	enum, err := file.message(5, []rule{{1, bytesField}, {2, repeatedBytes}})
	if err != nil {
		return err
	}
	if name, _ := enum.text(1); name != "Word" {
		return fmt.Errorf("enumeration %q", name)
	}
	for _, x := range enum {
		if x.number != 2 {
			continue
		}
		value, err := fields(nil).parse(x.data, []rule{{1, bytesField}, {2, varintField}})
		if err != nil {
			return err
		}
		if len(value) != 2 {
			return errors.New("a word without a number")
		}
		word, err := value.text(1)
		if err != nil {
			return err
		}
		s.words[value.number(2)] = []byte(word)
	}
	return nil
}

// typed reads the message of typed arguments in an event.
func (d *decoder) typed(b []byte) ([]Arg, error) {
	mark := len(d.fields)
	var err error
	if d.fields, err = d.fields.parse(b, d.schema.rules); err != nil {
		return nil, err
	}
	f := d.fields[mark:]
	defer func() { d.fields = d.fields[:mark] }()
	n := 0
	for i := range f {
		if i == 0 || f[i].number != f[i-1].number {
			n++
		}
	}
	at := d.room(n)
	for i := at; len(f) > 0; i++ {
		n := 1
		for n < len(f) && f[n].number == f[0].number {
			n++
		}
		a, err := d.typedArg(f[:n], d.schema.args[f[0].number])
		if err != nil {
			return nil, err
		}
		d.args[i], f = a, f[n:]
	}
	return d.args[at : at+n : at+n], nil
}

// typedArg reads one argument of the fields that hold it.
func (d *decoder) typedArg(f fields, of declaration) (a Arg, err error) {
	if !of.repeated {
		a, err = d.typedAtom(f[0], of.kind)
		a.Name = of.name
		return a, err
	}
	if of.kind != kindString {
		packed := f[0].data
		f = nil
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				return a, protowire.ParseError(n)
			}
			f, packed = append(f, field{num: v}), packed[n:]
		}
	}
	if len(f) == 0 {
		return a, fmt.Errorf("argument %q has no elements", of.name)
	}
	at := d.room(len(f))
	for i, x := range f {
		if d.args[at+i], err = d.typedAtom(x, of.kind); err != nil {
			return a, err
		}
	}
	return Arg{Name: of.name, Kind: trace.ArgArray, Elems: d.args[at : at+len(f) : at+len(f)]}, nil
}

// typedAtom reads a value that is no array.
func (d *decoder) typedAtom(x field, kind uint64) (a Arg, err error) {
	switch kind {
	case kindInt64:
		return Arg{Kind: trace.ArgInt, Bits: x.num}, nil
	case kindDouble:
		return Arg{Kind: trace.ArgFloat, Bits: x.num}, nil
	case kindString:
		_, err = text(x.data)
		return Arg{Kind: trace.ArgString, Text: x.data}, err
	}
	word, ok := d.schema.words[x.num]
	if !ok {
		err = fmt.Errorf("word %d is not declared", x.num)
	}
	return Arg{Kind: trace.ArgString, Text: word}, err
}

// Pathless makes a name what trace_processor makes of it, where dots and brackets are
// parts of a path.
func Pathless(name string) string { return pathless.Replace(name) }

var pathless = strings.NewReplacer(".", "_", "[", "_", "]", "_")
