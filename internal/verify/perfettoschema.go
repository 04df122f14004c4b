package verify

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// A schema declares the arguments that are fields of one message, instead of
// DebugAnnotations, as an extension of TrackEvent called "debug".
type schema struct {
	args  map[protowire.Number]declaration
	rules []rule
	words map[uint64]string // of the only enumeration
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

// eventArgs is the field of a TrackEvent that holds the message.
const eventArgs = 4715

// declarations reads an ExtensionDescriptor. Only arguments whose names are in the model
// may be in it.
func (p *perfettoFile) declarations(b []byte) error {
	if err := p.schema.read(b); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, name := range p.names {
		known[pathless.Replace(name)] = true
	}
	for _, d := range p.schema.args {
		if !known[d.name] {
			return fmt.Errorf("argument %q is declared, but not in the model", d.name)
		}
	}
	return nil
}

func (s *schema) read(b []byte) error {
	if s.args != nil {
		return errors.New("arguments are declared twice")
	}
	s.args, s.words = map[protowire.Number]declaration{}, map[uint64]string{}
	var set, files, file fields
	if err := set.parse(b, []rule{{1, bytesField}}); err != nil {
		return err
	}
	if err := files.parseIn(&set, 1, []rule{{1, bytesField}}); err != nil {
		return err
	}
	if err := file.parseIn(&files, 1, []rule{{1, bytesField}, {2, bytesField}, {4, bytesField}, {5, bytesField}, {7, bytesField}}); err != nil {
		return err
	}
	name, _ := file.text(1)
	if in, _ := file.text(2); name != "sgtrace.proto" || in != "sgtrace" {
		return fmt.Errorf("file %q of package %q", name, in)
	}
	if err := s.message(&file); err != nil {
		return err
	}
	if err := s.enumeration(&file); err != nil {
		return err
	}
	var extension fields
	if err := extension.parseIn(&file, 7, fieldRules); err != nil {
		return err
	}
	name, _ = extension.text(1)
	extends, _ := extension.text(2)
	of, _ := extension.text(6)
	if name != "debug" || extends != ".perfetto.protos.TrackEvent" || extension.number(3) != eventArgs || extension.number(4) != 1 || extension.number(5) != 11 || of != ".sgtrace.Args" {
		return fmt.Errorf("field %d of %s is %q, a %s", extension.number(3), extends, name, of)
	}
	return nil
}

var fieldRules = []rule{{1, bytesField}, {2, bytesField}, {3, varintField}, {4, varintField}, {5, varintField}, {6, bytesField}, {8, bytesField}}

func (s *schema) message(file *fields) error {
	var message, f fields
	if err := message.parseIn(file, 4, []rule{{1, bytesField}, {2, repeatedBytes}}); err != nil {
		return err
	}
	if name, _ := message.text(1); name != "Args" {
		return fmt.Errorf("message %q", name)
	}
	for _, x := range message.list {
		if x.number != 2 {
			continue
		}
		if err := f.reset().parse(x.data, fieldRules); err != nil {
			return err
		}
		if err := s.declare(&f); err != nil {
			return err
		}
	}
	return nil
}

// declare reads the declaration of one argument.
func (s *schema) declare(f *fields) error {
	number := protowire.Number(f.number(3))
	d := declaration{kind: f.number(5), repeated: f.number(4) == 3}
	d.name, _ = f.text(1)
	if _, twice := s.args[number]; twice || number == 0 || !d.repeated && f.number(4) != 1 || d.repeated && d.kind == kindDouble {
		return fmt.Errorf("argument %q is field %d, as another one is, or neither single nor repeated", d.name, number)
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
	s.args[number], s.rules = d, append(s.rules, rule{number, wire})
	return nil
}

func (s *schema) enumeration(file *fields) error {
	if file.find(5) == nil {
		return nil
	}
	var enum, value fields
	if err := enum.parseIn(file, 5, []rule{{1, bytesField}, {2, repeatedBytes}}); err != nil {
		return err
	}
	if name, _ := enum.text(1); name != "Word" {
		return fmt.Errorf("enumeration %q", name)
	}
	for _, x := range enum.list {
		if x.number != 2 {
			continue
		}
		if err := value.reset().parse(x.data, []rule{{1, bytesField}, {2, varintField}}); err != nil {
			return err
		}
		if len(value.list) != 2 {
			return errors.New("a word without a number")
		}
		s.words[value.number(2)], _ = value.text(1)
	}
	return nil
}

// typed reads the message of typed arguments in an event.
func (p *perfettoFile) typed(f *fields) ([]field, error) {
	x := f.find(eventArgs)
	if x == nil {
		return nil, nil
	}
	err := p.typedScratch.reset().parse(x.data, p.schema.rules)
	return p.typedScratch.list, err
}

// takeTyped compares the first of the typed arguments with a, if that is what the file
// calls it, and returns the others.
func (p *perfettoFile) takeTyped(values []field, a trace.Arg) (rest []field, taken bool, err error) {
	if len(values) == 0 {
		return nil, false, nil
	}
	d := p.schema.args[values[0].number]
	if !p.is(d.name, a.Key) && d.name != pathless.Replace(p.names[a.Key]) {
		return values, false, nil
	}
	n := 1
	for n < len(values) && values[n].number == values[0].number {
		n++
	}
	return values[n:], true, p.typedValue(values[:n], d, a)
}

// pathless makes a name what trace_processor makes of it, where dots and brackets are
// parts of a path.
var pathless = strings.NewReplacer(".", "_", "[", "_", "]", "_")

// typedValue compares the fields that hold one argument.
func (p *perfettoFile) typedValue(values []field, d declaration, a trace.Arg) error {
	if !d.repeated {
		if a.Kind == trace.ArgArray && len(a.Bytes()) == 0 && string(values[0].data) == "[]" {
			return nil
		}
		return p.typedAtom(values[0], d.kind, a)
	}
	if a.Kind != trace.ArgArray {
		return errors.New("it is an array in the file")
	}
	if d.kind != kindString {
		packed := values[0].data
		values = nil
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				return protowire.ParseError(n)
			}
			values, packed = append(values, field{num: v}), packed[n:]
		}
	}
	n := 0
	for e := range a.Elems {
		if n == len(values) {
			return errors.New("elements are missing in the file")
		}
		if err := p.typedAtom(values[n], d.kind, e); err != nil {
			return err
		}
		n++
	}
	if n < len(values) {
		return errors.New("it has more elements in the file")
	}
	return nil
}

// typedAtom compares a value that is no array.
func (p *perfettoFile) typedAtom(x field, kind uint64, a trace.Arg) error {
	equal := false
	switch kind {
	case kindInt64:
		equal = a.Kind == trace.ArgInt && x.num == uint64(a.Int())
	case kindDouble:
		equal = a.Kind == trace.ArgFloat && x.num == math.Float64bits(a.Float())
	case kindString:
		equal = a.Kind == trace.ArgString && string(x.data) == string(a.Bytes())
	case kindEnum:
		word, ok := p.schema.words[x.num]
		equal = ok && a.Kind == trace.ArgString && word == string(a.Bytes())
	}
	if !equal {
		return errors.New("its value is another one")
	}
	return nil
}
