package graphs

import (
	"encoding/json"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Parts make the inputs of parts of operators. An operator that launches the products of its experts
// one by one (vllm::moe_forward) does not have their weights among its inputs, but the views that it
// makes before each launch show them.
type Parts struct {
	syms    *trace.Symbols
	experts *trace.PerName[bool] // operators that compute experts, and so may have parts
	known   map[string][2]trace.Sym
}

// NewParts returns the parts of operators whose names are in syms.
func NewParts(syms *trace.Symbols) *Parts {
	experts := trace.EachName(syms, func(name string) bool { return kernelname.KindOf(name) == kernelname.KindExperts })
	return &Parts{syms, experts, map[string][2]trace.Sym{}}
}

// Has reports whether an operator computes experts, and so may have parts.
func (p *Parts) Has(operator trace.Sym) bool { return p.experts.Of(operator) }

// Inputs returns the tensors of several operators: those of the first one as they are, and of the
// others matrices and larger ones, each once. in has shapes and types by operator.
func (p *Parts) Inputs(in [][2]trace.Sym) (shapes, types trace.Sym) {
	key := make([]byte, 0, 8*len(in))
	for _, x := range in {
		for _, sym := range x {
			key = append(key, byte(sym), byte(sym>>8), byte(sym>>16), byte(sym>>24))
		}
	}
	found, ok := p.known[string(key)]
	if !ok {
		found = p.join(in)
		p.known[string(key)] = found
	}
	return found[0], found[1]
}

func (p *Parts) join(in [][2]trace.Sym) [2]trace.Sym {
	var dims []json.RawMessage
	var types []string
	seen := map[string]bool{}
	for i, x := range in {
		var d []json.RawMessage
		var t []string
		if x[0] == 0 || x[1] == 0 || json.Unmarshal([]byte(p.syms.Name(x[0])), &d) != nil || json.Unmarshal([]byte(p.syms.Name(x[1])), &t) != nil || len(d) != len(t) {
			if i == 0 {
				return [2]trace.Sym{}
			}
			continue
		}
		for k := range d {
			if i > 0 {
				var sizes []int64
				id := string(d[k]) + t[k]
				if json.Unmarshal(d[k], &sizes) != nil || len(sizes) < 2 || slices.Contains(sizes, 0) || seen[id] {
					continue
				}
				seen[id] = true
			}
			dims, types = append(dims, d[k]), append(types, t[k])
		}
	}
	shapes, _ := json.Marshal(dims) // of texts, and of what was JSON: neither fails
	names, _ := json.Marshal(types)
	return [2]trace.Sym{p.syms.Intern(string(shapes)), p.syms.Intern(string(names))}
}

// part adds a frame for the part of the innermost operator that makes a launch to the capture, and
// returns it; none if the operator computes no experts, or shows nothing since the launch before.
func (o *openFrames) part(since trace.Time, parts *Parts, c *Capture) int32 {
	at := len(o.open) - 1
	for at >= 0 && o.frames[o.open[at]].Kind != profile.OperatorFrame {
		at--
	}
	if at < 0 {
		return none
	}
	operator := &o.frames[o.open[at]]
	if !parts.Has(operator.Name) {
		return none
	}
	in := [][2]trace.Sym{{operator.Shapes, operator.Types}}
	for i := o.next - 1; i > o.open[at] && o.frames[i].from > since; i-- {
		if f := &o.frames[i]; f.Kind == profile.OperatorFrame && f.Shapes != 0 {
			in = append(in, [2]trace.Sym{f.Shapes, f.Types})
		}
	}
	if len(in) == 1 {
		return none
	}
	f := Frame{Around: o.kept[at], Kind: profile.OperatorFrame, Name: operator.Name}
	f.Shapes, f.Types = parts.Inputs(in)
	c.Frames = append(c.Frames, f)
	return int32(len(c.Frames) - 1)
}

// Part returns the frame of the part of its operator that launched a node at capture; none if that is
// unknown, or the whole operator.
func (l *Launch) Part(node int) int32 {
	c := l.of(node)
	if c == nil || l.Pairs.ModuleOnly(node) || c.part == 0 {
		return none
	}
	return c.part
}
