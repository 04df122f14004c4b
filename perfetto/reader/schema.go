package reader

import (
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

// A declaration is the declaration of one field.
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
func (s *schema) read(p *parser, b []byte) []string {
	if s.args != nil {
		p.fail("arguments are declared twice")
	}
	s.args, s.words = map[protowire.Number]declaration{}, map[uint64][]byte{}
	files := p.within(p.message(b, rule{1, bytesField}), 1, rule{1, bytesField})
	file := p.within(files, 1, rule{1, bytesField}, rule{2, bytesField}, rule{4, bytesField}, rule{5, bytesField}, rule{7, bytesField})
	if name, in := p.text(file, 1), p.text(file, 2); name != "sgtrace.proto" || in != "sgtrace" {
		p.fail("file %q of package %q", name, in)
	}
	s.message(p, file)
	if x := file.find(5); x != nil {
		s.enumeration(p, x.data)
	}
	extension := p.within(file, 7, fieldRules...)
	name, extends, of := p.text(extension, 1), p.text(extension, 2), p.text(extension, 6)
	if name != "debug" || extends != ".perfetto.protos.TrackEvent" || extension.number(3) != eventArgs || extension.number(4) != 1 || extension.number(5) != 11 || of != ".sgtrace.Args" {
		p.fail("field %d of %s is %q, a %s", extension.number(3), extends, name, of)
	}
	return s.names
}

var fieldRules = []rule{{1, bytesField}, {2, bytesField}, {3, varintField}, {4, varintField}, {5, varintField}, {6, bytesField}, {8, bytesField}}

func (s *schema) message(p *parser, file fields) {
	message := p.within(file, 4, rule{1, bytesField}, rule{2, repeatedBytes})
	if name := p.text(message, 1); name != "Args" {
		p.fail("message %q", name)
	}
	for _, x := range message {
		if x.number == 2 {
			s.declare(p, p.message(x.data, fieldRules...))
		}
	}
}

// declare reads the declaration of one argument.
func (s *schema) declare(p *parser, f fields) {
	number := protowire.Number(f.number(3))
	d := declaration{name: p.text(f, 1), kind: f.number(5), repeated: f.number(4) == 3}
	if _, twice := s.args[number]; twice || number == 0 || !d.repeated && f.number(4) != 1 || d.repeated && d.kind == kindDouble {
		p.fail("argument %q is field %d, as another one is, or neither single nor repeated", d.name, number)
	}
	if d.name == "" || d.name != Pathless(d.name) {
		p.fail("argument %q has no name, or one that reads as a path", d.name)
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
		p.fail("argument %q is of type %d", d.name, d.kind)
	}
	if of, options := p.text(f, 6), p.text(f, 8); of != enum || options != packed {
		p.fail("argument %q has the type %q and the options %q", d.name, of, options)
	}
	s.args[number], s.names, s.rules = d, append(s.names, d.name), append(s.rules, rule{number, wire})
}

func (s *schema) enumeration(p *parser, b []byte) {
	enum := p.message(b, rule{1, bytesField}, rule{2, repeatedBytes})
	if name := p.text(enum, 1); name != "Word" {
		p.fail("enumeration %q", name)
	}
	for _, x := range enum {
		if x.number != 2 {
			continue
		}
		value := p.message(x.data, rule{1, bytesField}, rule{2, varintField})
		if len(value) != 2 {
			p.fail("a word without a number")
		}
		s.words[value.number(2)] = []byte(p.text(value, 1))
	}
}

// typed reads the message with the typed arguments of an event.
func (d *decoder) typed(b []byte) []Arg {
	mark := len(d.fields)
	d.fields = d.parse(d.fields, b, d.schema.rules)
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
		a := d.typedArg(f[:n], d.schema.args[f[0].number])
		d.args[i], f = a, f[n:]
	}
	return d.args[at : at+n : at+n]
}

// typedArg reads one argument from the fields that hold it.
func (d *decoder) typedArg(f fields, of declaration) Arg {
	if !of.repeated {
		a := d.typedAtom(f[0], of.kind)
		a.Name = of.name
		return a
	}
	if of.kind != kindString {
		packed := f[0].data
		f = nil
		for len(packed) > 0 {
			v, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				d.fail("%w", protowire.ParseError(n))
				break
			}
			f, packed = append(f, field{num: v}), packed[n:]
		}
	}
	if len(f) == 0 {
		d.fail("argument %q has no elements", of.name)
	}
	at := d.room(len(f))
	for i, x := range f {
		d.args[at+i] = d.typedAtom(x, of.kind)
	}
	return Arg{Name: of.name, Kind: trace.ArgArray, Elems: d.args[at : at+len(f) : at+len(f)]}
}

// typedAtom reads a value that is not an array.
func (d *decoder) typedAtom(x field, kind uint64) Arg {
	switch kind {
	case kindInt64:
		return Arg{Kind: trace.ArgInt, Bits: x.num}
	case kindDouble:
		return Arg{Kind: trace.ArgFloat, Bits: x.num}
	case kindString:
		d.valid(x.data)
		return Arg{Kind: trace.ArgString, Text: x.data}
	}
	word, ok := d.schema.words[x.num]
	if !ok {
		d.fail("word %d is not declared", x.num)
	}
	return Arg{Kind: trace.ArgString, Text: word}
}

// Pathless converts a name as trace_processor does, where dots and brackets are parts of a path.
func Pathless(name string) string { return pathless.Replace(name) }

var pathless = strings.NewReplacer(".", "_", "[", "_", "]", "_")
