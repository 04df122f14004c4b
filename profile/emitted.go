package profile

import (
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// CutOperatorRange takes a range of PyTorch's emit_nvtx apart, which stands for an operator:
// "aten::mm, seq = 12, op_id = 7, sizes = [[8, 4096], [4096, 1024]], input_op_ids = [(3,0)]".
// shapes are as in [Frame], "" if they were not recorded. ok is false for other ranges.
func CutOperatorRange(text string) (name, shapes string, ok bool) {
	end := len(text)
	for _, key := range [...]string{", seq = ", ", op_id = ", ", sizes = "} {
		if i := strings.Index(text, key); i > 0 && i < end {
			end = i
		}
	}
	if end == len(text) {
		return "", "", false
	}
	name, rest := text[:end], text[end:]
	if _, sizes, found := strings.Cut(rest, ", sizes = "); found {
		sizes, _, _ = strings.Cut(sizes, ", input_op_ids = ")
		shapes = strings.ReplaceAll(sizes, " ", "")
	}
	return name, shapes, true
}

// OperatorRanges are the operators, and the calls of modules, that ranges stand for. It is not safe for
// concurrent use.
type OperatorRanges struct{ names *trace.PerName[operatorRange] }

type operatorRange struct {
	name, shapes trace.Sym
	kind         FrameKind
	ok           bool
}

// NewOperatorRanges returns an empty table.
func NewOperatorRanges(syms *trace.Symbols) *OperatorRanges {
	return &OperatorRanges{trace.EachName(syms, func(name string) operatorRange { return readOperatorRange(syms, name) })}
}

// Of returns the operator, or the call of a module, that a range stands for; ok is false if it does for none.
func (o *OperatorRanges) Of(r *Range) (f Frame, ok bool) {
	if r.Open || r.Style != PushPop {
		return Frame{}, false
	}
	known := o.names.Of(r.Name)
	if !known.ok {
		return Frame{}, false
	}
	f = Frame{Event: r.Event, TID: r.TID, Kind: known.kind, Shapes: known.shapes}
	f.Name = known.name
	return f, true
}

func readOperatorRange(syms *trace.Symbols, text string) (r operatorRange) {
	if name, shapes, ok := CutOperatorRange(text); ok {
		r = operatorRange{name: syms.Intern(name), kind: OperatorFrame, ok: true}
		if shapes != "" {
			r.shapes = syms.Intern(shapes)
		}
	} else if name, ok := CutModuleRange(text); ok {
		r = operatorRange{name: syms.Intern(name), kind: PythonFrame, ok: true}
	}
	return r
}
