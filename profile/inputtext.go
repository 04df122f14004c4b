package profile

import (
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// inputTexts make texts of the shapes and types of operators' inputs. Each is written once:
// traces have many operators, but few shapes.
type inputTexts struct {
	syms                    *trace.Symbols
	args                    *trace.Args
	shapes, types, concrete trace.Sym               // names of the arguments
	known                   map[string]trace.Sym    // by what is encoded of the list
	attentions              map[trace.Sym]Attention // by name, of operators that compute attention
	valued                  map[trace.Sym]bool      // names of operators whose values are asked for
}

func newInputTexts(syms *trace.Symbols, args *trace.Args) *inputTexts {
	t := &inputTexts{syms: syms, args: args, known: map[string]trace.Sym{}}
	t.shapes, _ = syms.Lookup("Input Dims")
	t.types, _ = syms.Lookup("Input type")
	t.concrete, _ = syms.Lookup(ConcreteInputs)
	t.attentions = map[trace.Sym]Attention{}
	for name, a := range attentions {
		if sym, ok := syms.Lookup(name); ok {
			t.attentions[sym] = a
		}
	}
	t.valued = map[trace.Sym]bool{}
	for _, name := range valued {
		if sym, ok := syms.Lookup(name); ok {
			t.valued[sym] = true
		}
	}
	return t
}

// valued are the operators whose work shapes alone do not tell: strides, and whether they train.
var valued = []string{"aten::convolution", "aten::native_batch_norm", "aten::miopen_batch_norm", "aten::cudnn_batch_norm"}

// ConcreteInputs is the argument of an operator that has the values of its inputs that are no
// tensors.
const ConcreteInputs = "Concrete Inputs"

// mask returns what the arguments of an operator of a name say about which keys a token attends to.
func (t *inputTexts) mask(name trace.Sym, id trace.ArgsID) Mask {
	rule, ok := t.attentions[name]
	if !ok {
		return Mask{}
	}
	list, ok := t.args.Find(id, t.concrete)
	if !ok || list.Kind != trace.ArgArray {
		return Mask{}
	}
	var texts [3]string // of the causality and of both sides of the window
	input := 0
	for value := range list.Elems {
		if at := input - rule.Causal; at == 0 || rule.Windowed && at > 0 && at < len(texts) {
			if value.Kind == trace.ArgString {
				texts[at] = string(value.Bytes())
			}
		}
		input++
	}
	return maskOf(texts[0], texts[1], texts[2])
}

// values returns [Frame.Values] of an operator of a name.
func (t *inputTexts) values(name trace.Sym, id trace.ArgsID) trace.Sym {
	if !t.valued[name] {
		return 0
	}
	list, ok := t.args.Find(id, t.concrete)
	if !ok || list.Kind != trace.ArgArray {
		return 0
	}
	return t.text(list)
}

// of returns what the arguments of an operator say about its inputs, 0 where they do not.
func (t *inputTexts) of(id trace.ArgsID) (shapes, types trace.Sym) {
	for a := range t.args.All(id) {
		switch {
		case a.Kind != trace.ArgArray:
		case a.Key == t.shapes:
			shapes = t.text(a)
		case a.Key == t.types:
			types = t.text(a)
		}
	}
	return shapes, types
}

func (t *inputTexts) text(list trace.Arg) trace.Sym {
	sym, ok := t.known[string(list.Bytes())]
	if !ok {
		sym = t.syms.Intern(string(appendInput(nil, list)))
		t.known[string(list.Bytes())] = sym
	}
	return sym
}

// appendInput writes lists of numbers and texts as JSON without spaces. Other values, which
// no profiler writes there, are null.
func appendInput(b []byte, a trace.Arg) []byte {
	switch a.Kind {
	case trace.ArgInt:
		return strconv.AppendInt(b, a.Int(), 10)
	case trace.ArgString:
		return strconv.AppendQuote(b, string(a.Bytes()))
	case trace.ArgArray:
		b = append(b, '[')
		for e := range a.Elems {
			if b[len(b)-1] != '[' {
				b = append(b, ',')
			}
			b = appendInput(b, e)
		}
		return append(b, ']')
	}
	return append(b, "null"...)
}
