package profile

import (
	"encoding/json"
	"math"
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
	communicates            trace.Sym               // [CommunicationOperator]
	communication           [numCommunication]trace.Sym
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
	t.communicates, _ = syms.Lookup(CommunicationOperator)
	for i, name := range communicationArguments {
		t.communication[i], _ = syms.Lookup(name)
	}
	for _, name := range valued {
		if sym, ok := syms.Lookup(name); ok {
			t.valued[sym] = true
		}
	}
	return t
}

// valued are the operators whose work shapes alone do not tell: strides, and whether they train.
var valued = []string{CommunicationOperator, "aten::convolution", "aten::native_batch_norm", "aten::miopen_batch_norm", "aten::cudnn_batch_norm"}

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
	if name == t.communicates {
		return t.communicated(id)
	}
	list, ok := t.args.Find(id, t.concrete)
	if !ok || list.Kind != trace.ArgArray {
		return 0
	}
	return t.text(list)
}

// CommunicationOperator is the name in PyTorch's profiler of the operator around the launch of a collective. Its
// [Frame.Values] are those of [CommunicationOf].
const CommunicationOperator = "record_param_comms"

// communicationArguments say what a collective communicates.
var communicationArguments = [numCommunication]string{"Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Process Group Ranks"}

const numCommunication = 6

// communicated returns the arguments of a collective as a list of texts.
func (t *inputTexts) communicated(id trace.ArgsID) trace.Sym {
	b := []byte{'['}
	for i, key := range t.communication {
		if i > 0 {
			b = append(b, ',')
		}
		a, ok := t.args.Find(id, key)
		switch {
		case ok && a.Kind == trace.ArgInt:
			b = strconv.AppendQuote(b, strconv.FormatInt(a.Int(), 10))
		case ok && a.Kind == trace.ArgString:
			b = strconv.AppendQuote(b, string(a.Bytes()))
		default:
			b = append(b, `""`...)
		}
	}
	b = append(b, ']')
	return t.syms.Intern(string(b))
}

// CommunicationOf returns what values of [CommunicationOperator] say: how many bytes it has and each rank sends, the size of
// the group, and its ranks as text, which may be cut off. ok is false if that is not known.
func CommunicationOf(values string) (bytes int64, sent float64, size int32, ranks string, ok bool) {
	var v []string
	if json.Unmarshal([]byte(values), &v) != nil || len(v) != numCommunication {
		return 0, 0, 0, "", false
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	n := number(v[4])
	if n < 2 || n > math.MaxInt32 {
		return 0, 0, 0, "", false
	}
	bytes = CollectiveBytes(v[0], v[1], number(v[2]), number(v[3]), int32(n))
	sent = BusBytes(v[0], bytes, int32(n))
	return bytes, sent, int32(n), v[5], sent > 0
}

// texts returns what the arguments of an operator say about its inputs, 0 where they do not.
func (t *inputTexts) texts(id trace.ArgsID) (shapes, types trace.Sym) {
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
