package nsysexport

import (
	"cmp"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// ranges passes NVTX annotations, including marks, named by their text alone.
func (w *walk) ranges(yield func(*profile.Range, *rows.Range) bool) {
	var out profile.Range
	w.src.Ranges(func(r *rows.Range) bool {
		if !w.event(&out.Event, r.PID, r.Start, r.End, 0, r.Text) {
			return true
		}
		out.TID, out.Open, out.Style = int64(r.TID), r.Open, profile.PushPop
		if r.Kind == rows.MarkStartEnd {
			out.Style = profile.StartEnd
		}
		return yield(&out, r)
	})
}

// rangeNames are the names of ranges with their domains.
type rangeNames struct {
	syms  *trace.Symbols
	known map[[2]trace.Sym]trace.Sym // by domain and text
}

func (n *rangeNames) nameOf(r *rows.Range) trace.Sym {
	if r.Domain == 0 {
		return r.Text
	}
	key := [2]trace.Sym{r.Domain, r.Text}
	return order.Memo(n.known, key, func() trace.Sym { return n.syms.Intern(n.syms.Name(r.Domain) + ":" + n.syms.Name(r.Text)) })
}

// ranges reads NVTX annotations: ranges that nest on a thread go on one row per domain, ranges that may end on
// another thread on rows of their own, and marks become instants.
func (r *reader) ranges() {
	c := r.category("nvtx")
	open := trace.Renamed(r.syms, func(text string) string { return text + " (never closed)" })
	steps := trace.EachName(r.syms, stepOf)
	r.walk().ranges(func(x *profile.Range, n *rows.Range) bool {
		if n.Text == 0 {
			n.Text = r.syms.Intern(profile.NoName)
		}
		p := r.saw(&x.Event)
		if n.Kind == rows.MarkInstant {
			if r.keepsAny(c, n.Text, n.Start, n.Start) {
				p.instants = append(p.instants, profile.Instant{Time: n.Start, Row: r.rangeRow(p, n), Name: n.Text, Args: r.rangeArgs(n)})
			}
			return true
		}
		row, event := r.rangeRow(p, n), int32(profile.NoEvent)
		if r.keeps(c, n.Text, n.Start, n.End) {
			s := profile.Slice{Time: n.Start, Dur: x.Dur(), Name: n.Text, Cat: c.sym, Args: r.rangeArgs(n), Place: c.kind.On(row)}
			if n.Open {
				s.Name = open.Of(n.Text)
			}
			event = int32(p.events.add(s))
		}
		if name := steps.Of(n.Text); name.is && !n.Open {
			step := name.step
			step.Event, step.Row, step.Time, step.Dur, step.Name = event, row, n.Start, int64(n.End-n.Start), n.Text
			if name.part {
				p.forwards = append(p.forwards, step)
			} else {
				p.steps = append(p.steps, step)
			}
		}
		return true
	})
}

// rangeRow returns the row of an annotation.
func (r *reader) rangeRow(p *piece, n *rows.Range) int32 {
	if n.Kind == rows.MarkStartEnd {
		return p.row(rowKey{layerAsync, 0, uint32(n.Domain)}, func() profile.Row {
			name := cmp.Or(r.syms.Name(n.Domain), "NVTX") + " start/end ranges"
			return profile.Row{Kind: profile.RowAsync, PID: int64(p.pid), PIDText: numberText(p.pid), Process: r.known().processName(p.pid), Name: name}
		})
	}
	key := rowKey{layerNVTX, uint32(n.TID), uint32(n.Domain)}
	if p.lastKey == key {
		return p.lastRow
	}
	return p.row(key, func() profile.Row {
		name := "NVTX"
		if n.Domain != 0 {
			name += " " + r.syms.Name(n.Domain)
		}
		return r.threadRow(p, n.TID, name, orderNVTX)
	})
}

// rangeArgs returns the arguments of an annotation.
func (r *reader) rangeArgs(n *rows.Range) trace.ArgsID {
	if r.put == nil || n.Category == 0 && !n.Open {
		return n.Args
	}
	r.list = r.list[:0]
	if n.Category != 0 {
		r.list = r.list.String(r.keys.category, r.syms.Name(n.Category))
	}
	if n.Open {
		r.list = r.list.Bool(r.keys.open, true)
	}
	return r.put.Put(r.list.Extend(n.Args))
}

// A stepName records whether a name is that of a step, and its number.
type stepName struct {
	step     profile.Step
	is, part bool
}

func stepOf(name string) (n stepName) {
	var label profile.StepName
	label, n.is = profile.ParseStep(name)
	n.step.Kind, n.step.Batch, n.part = label.Kind, label.Batch, profile.IsPartOfStep(name)
	return n
}
