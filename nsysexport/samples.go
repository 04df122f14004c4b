package nsysexport

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// maxSamples is the approximate number of samples of threads that are drawn: a timeline with more is slow to
// open, and shows no more at any zoom level.
const maxSamples = 1 << 18

// samples passes the samples of threads that have a stack.
func (w *walk) samples(yield func(*profile.Sample) bool) {
	if !w.src.HasChains(rows.SampleChains) {
		return
	}
	c, stacks := &chains{}, &profile.Stacks{}
	readChains(w.src.Source, rows.SampleChains, true, c, stacks)
	out := profile.Sample{Stacks: stacks}
	w.src.StackSamples(func(x *rows.StackSample) bool {
		out.Stack = c.stackOf(x.Chain)
		if out.Stack == 0 || !w.event(&out.Event, x.PID, x.Time, x.Time, 0, stacks.Frame(out.Stack).Function) {
			return true
		}
		out.TID, out.CPU = int64(x.TID), x.CPU
		return yield(&out)
	})
}

// samples reads the interrupts of threads, as instants with the name of the innermost function and the stack.
func (r *reader) samples() {
	cat := r.category("sample")
	if !cat.wanted {
		return
	}
	args := map[profile.StackID]trace.ArgsID{}
	names := profile.BareNames(r.syms)
	step := 1 + (r.src.StackSampleRows()-1)/maxSamples
	n, drawn := int64(0), 0
	r.walk().samples(func(x *profile.Sample) bool {
		if n++; n%step != 0 {
			return true
		}
		p := r.saw(&x.Event)
		if !profile.IsPossible(x.Start) {
			r.impossible(x.Start, x.Start)
			return true
		}
		if !r.keepsAny(cat, x.Name, x.Start, x.Start) {
			return true
		}
		row := p.row(rowKey{layerSamples, uint32(x.TID), 0}, func() profile.Row { return r.threadRow(p, int32(x.TID), "CPU samples", orderSamples) })
		if r.put != nil && args[x.Stack] == 0 {
			args[x.Stack] = r.put.Put(r.list[:0].String(r.keys.stack, folded(r.syms, names, x)))
		}
		p.instants = append(p.instants, profile.Instant{Time: x.Start, Row: row, Name: x.Name, Args: args[x.Stack]})
		drawn++
		return true
	})
	if step > 1 && n > 0 {
		r.src.Diag(trace.NsysSamplesThinned, "", 0, drawn, n)
	}
}

// maxFunctions is the number of functions of a stack that are drawn, innermost first.
const maxFunctions = 32

// folded returns a stack as text, outermost function first: "main;run;memset". It omits namespaces and types.
func folded(syms *trace.Symbols, names *trace.PerName[trace.Sym], s *profile.Sample) string {
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
