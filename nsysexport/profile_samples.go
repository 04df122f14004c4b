package nsysexport

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// maxSamples is how many samples of threads are drawn of an export, about: a timeline with
// more of them is slow to open, and at no zoom shows more.
const maxSamples = 1 << 18

// stackSamples reads what threads ran when they were interrupted, as instants that are called
// by the innermost function and have the stack.
func (r *reader) stackSamples() {
	cat := r.category("sample")
	if !cat.wanted || !r.src.HasChains(rows.SampleChains) {
		return
	}
	c, stacks := &chains{}, &profile.Stacks{}
	readChains(r.src, rows.SampleChains, true, c, stacks)
	args := make([]trace.ArgsID, stacks.Len()+1) // by stack; 0 is not put yet
	names := profile.NewBareNames(r.syms)
	step := 1 + (r.src.StackSampleRows()-1)/maxSamples
	n, drawn := int64(0), 0
	for x := range r.src.StackSamples {
		id := c.of(x.Chain)
		if id == 0 {
			continue
		}
		if n++; n%step != 0 {
			continue
		}
		p, name := r.piece(x.PID), stacks.Frame(id).Function
		p.saw(x.Time, x.Time)
		if !isTime(x.Time) {
			r.impossible(x.Time, x.Time)
			continue
		}
		if !r.keepsAny(cat, name, x.Time, x.Time) {
			continue
		}
		row := p.row(rowKey{layerSamples, uint32(x.TID), 0}, func() profile.Row { return r.threadRow(p, x.TID, "CPU samples", orderSamples) })
		if r.put != nil && args[id] == 0 {
			args[id] = r.put.Put(r.list[:0].String(r.keys.stack, folded(r.syms, names, &profile.Sample{Stack: id, Stacks: stacks})))
		}
		p.instants = append(p.instants, trace.Instant{Time: x.Time, Track: trace.TrackID(row), Name: name, Args: args[id]})
		drawn++
	}
	if step > 1 {
		r.src.Diag(trace.NsysSamplesThinned, "", 0, drawn, n)
	}
}

// maxFunctions is how many functions of a stack are drawn: the innermost ones.
const maxFunctions = 32

// folded returns a stack as text, the outermost function first: "main;run;memset". Functions
// come without namespaces and types.
func folded(syms *trace.Symbols, names *profile.BareNames, s *profile.Sample) string {
	var text []string
	for f := range s.Stacks.From(s.Stack) {
		if len(text) == maxFunctions {
			text = append(text, "...")
			break
		}
		name := syms.Name(f.Function)
		if !strings.HasPrefix(name, "[") { // "[Broken backtraces]"
			name = syms.Name(names.Of(f.Function))
		}
		text = append(text, name)
	}
	slices.Reverse(text)
	return strings.Join(text, ";")
}
