package profile

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// inputTexts makes texts of the shapes and types of operators' inputs, each text only once: traces have many
// operators, but few shapes.
type inputTexts struct {
	syms                    *trace.Symbols
	args                    *trace.Args
	shapes, types, concrete trace.Sym               // argument names
	known                   map[string]trace.Sym    // by the encoded list
	attentions              map[trace.Sym]Attention // by name, for operators that compute attention
	valued                  map[trace.Sym]bool      // names of operators whose values are needed
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

// valued are the operators whose work depends on more than shapes: strides, and whether they train.
var valued = []string{CommunicationOperator, "aten::convolution", "aten::native_batch_norm", "aten::miopen_batch_norm", "aten::cudnn_batch_norm"}

// ConcreteInputs is the argument of an operator with the values of its inputs that are not tensors.
const ConcreteInputs = "Concrete Inputs"

// mask returns the mask of an operator with a name, from its arguments.
func (t *inputTexts) mask(name trace.Sym, id trace.ArgsID) Mask {
	rule, ok := t.attentions[name]
	if !ok {
		return Mask{}
	}
	list, ok := t.args.Find(id, t.concrete)
	if !ok || list.Kind != trace.ArgArray {
		return Mask{}
	}
	var texts [3]string // causality, and both sides of the window
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

// values returns the [Frame.Values] of an operator with a name.
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

// communicationArguments describe the data of a collective.
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

// CommunicationOf parses the values of a [CommunicationOperator]: the size of the collective in bytes, the
// bytes that each rank sends, the size of the group, and its ranks as text, which may be cut off. ok is false
// if they are unknown.
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

// texts returns the shapes and types of an operator's inputs, 0 if its arguments lack them.
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

// appendInput appends lists of numbers and texts as JSON without spaces. Other values, which no profiler writes
// there, become null.
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

// Lengths are the lengths of the sequences in a step, summed over its requests: those that are prefilled
// (context), and those that decode (generation). Tokens are computed in the step, and attend to keys, their own
// and earlier ones; pairs are the sum of tokens times keys of each request.
type Lengths struct {
	ContextTokens, ContextKeys, ContextSquares, ContextPairs             int64
	GenerationTokens, GenerationKeys, GenerationSquares, GenerationPairs int64
}

// parseLengths returns the lengths in the name of a step, nil if it has none. The known forms are
//
//	execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)   vLLM
//	step[DECODE bs=64 g_sq=64 g_sk=70000 g_sqsq=64 g_sqsk=70000]                        SGLang; context has c_sq=
func parseLengths(name string) *Lengths {
	if _, fields, ok := strings.Cut(name, "step["); ok {
		return fieldLengths(fields)
	}
	_, rest, ok := strings.Cut(name, "context_")
	if !ok {
		return nil
	}
	context, generation, ok := strings.Cut(rest, "generation_")
	if !ok {
		return nil
	}
	c, ok1 := sums(context)
	g, ok2 := sums(generation)
	if !ok1 || !ok2 {
		return nil
	}
	return &Lengths{c[0], c[1], c[2], c[3], g[0], g[1], g[2], g[3]}
}

// sums parses "32(sq32sk55086sqsq32sqsk55086)_".
func sums(s string) (n [4]int64, ok bool) {
	_, s, ok = strings.Cut(s, "(")
	if !ok {
		return n, false
	}
	for i, key := range [...]string{"sq", "sk", "sqsq", "sqsk"} {
		if s, ok = strings.CutPrefix(s, key); !ok {
			return n, false
		}
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			return n, false
		}
		var err error
		if n[i], err = strconv.ParseInt(s[:end], 10, 64); err != nil {
			return n, false
		}
		s = s[end:]
	}
	return n, true
}

// fieldLengths parses "DECODE bs=64 g_sq=64 g_sk=70000 ...]". It has no fields for a kind of requests that is
// not in the step.
func fieldLengths(fields string) *Lengths {
	var l Lengths
	places := map[string]*int64{"c_sq": &l.ContextTokens, "c_sk": &l.ContextKeys, "c_sqsq": &l.ContextSquares, "c_sqsk": &l.ContextPairs,
		"g_sq": &l.GenerationTokens, "g_sk": &l.GenerationKeys, "g_sqsq": &l.GenerationSquares, "g_sqsk": &l.GenerationPairs}
	found := map[string]bool{}
	for field := range strings.FieldsSeq(fields) {
		key, value, _ := strings.Cut(strings.TrimSuffix(field, "]"), "=")
		if at := places[key]; at != nil {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil
			}
			*at = n
			found[key[:1]] = true
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &l
}
