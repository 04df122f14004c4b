package graphs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// maxPasses is the most passes of a process that are read, the longest ones: prefills and decode steps
// of a model launch the same kinds of kernels in the same order.
const maxPasses = 4

// passesOf returns passes through models that ran without a graph, in the streams of a set.
func passesOf(set *profile.Set) []*Capture {
	streams := make([][]*Capture, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		r := &captureReader{syms: set.Syms, works: trace.EachName(set.Syms, workOf)}
		if r.findPasses(s); len(r.windows) == 0 {
			return
		}
		r.readSteps(s)
		r.dropReplays(s)
		r.readLaunches(s)
		r.readNames(s)
		r.readFrames(s)
		for _, w := range r.windows {
			if len(w.launches) == 0 {
				continue
			}
			c := w.capture(r.syms)
			c.Rank, c.Eager = set.Ranks[w.rank], true
			if i < len(set.Files) {
				c.File = set.Files[i]
			}
			streams[i] = append(streams[i], c)
		}
	})
	return slices.Concat(streams...)
}

// A module is a call of a module that is not within another one.
type module struct {
	name     trace.Sym
	from, to trace.Time
}

// findPasses finds the longest calls of modules that are not within another one, which are models, and
// the calls behind them that belong to the same pass, such as the one that makes logits.
func (r *captureReader) findPasses(s profile.Stream) {
	type candidate struct {
		thread []module
		at     int
	}
	passes := map[process][]candidate{}
	for of, list := range r.outermost(s) {
		for i := range list {
			passes[of.process] = append(passes[of.process], candidate{list, i})
		}
	}
	for of, list := range passes {
		slices.SortFunc(list, func(a, b candidate) int {
			x, y := a.thread[a.at], b.thread[b.at]
			return cmp.Or(cmp.Compare(y.to-y.from, x.to-x.from), cmp.Compare(x.from, y.from))
		})
		for _, c := range list[:min(maxPasses, len(list))] {
			first := c.thread[c.at]
			w := newWindow(of, first.from, first.to)
			w.pass = true
			seen := map[trace.Sym]bool{}
			for _, m := range c.thread[c.at:] {
				if seen[m.name] {
					break // it belongs to the next pass
				}
				seen[m.name], w.to = true, m.to
			}
			r.windows = append(r.windows, w)
		}
	}
	r.sortWindows()
}

// A modulesOf identifies a thread of a process.
type modulesOf struct {
	process
	tid int64
}

// outermost returns the calls of modules that are not within another one, by thread, in the order of time.
func (r *captureReader) outermost(s profile.Stream) map[modulesOf][]module {
	calls := map[modulesOf][]module{}
	isModule := profilewalk.NamesWith(r.syms, profile.ModulePrefix)
	for f := range s.Frames {
		if f.Kind == profile.PythonFrame && isModule.Of(f.Name) {
			of := modulesOf{process{f.Rank, f.PID}, f.TID}
			calls[of] = append(calls[of], module{f.Name, f.Start, f.End})
		}
	}
	for of, list := range calls {
		slices.SortFunc(list, func(a, b module) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.name, b.name))
		})
		outer := list[:0]
		for _, m := range list {
			if n := len(outer); n == 0 || m.from >= outer[n-1].to {
				outer = append(outer, m)
			}
		}
		calls[of] = outer
	}
	return calls
}

// readSteps finds the steps that passes belong to.
func (r *captureReader) readSteps(s profile.Stream) {
	names := profilewalk.StepNames(r.syms)
	for a := range s.Ranges {
		label := names.Of(a.Name)
		if label == nil {
			continue
		}
		tokens, ok := label.StepName.Tokens()
		for w := range r.overlapping(&a.Event) {
			if ok && a.Start <= w.from && w.from < a.End {
				w.tokens, w.batch = tokens, int64(label.StepName.Batch)
			}
		}
	}
}

// dropReplays drops the passes that launch graphs: most of what they run is in these.
func (r *captureReader) dropReplays(s profile.Stream) {
	isLaunch := profilewalk.GraphLaunches(r.syms)
	replays := map[*window]bool{}
	for c := range s.Calls {
		if isLaunch.Of(c.Name) {
			for w := range r.overlapping(&c.Event) {
				replays[w] = true
			}
		}
	}
	r.windows = slices.DeleteFunc(r.windows, func(w *window) bool { return replays[w] })
}

// readNames sets the names and shapes of launches to those of the kernels that ran. It drops launches
// without one.
func (r *captureReader) readNames(s profile.Stream) {
	type key struct{ rank, correlation int64 }
	of := map[key]*launchCall{}
	for _, w := range r.windows {
		for i := range w.launches {
			of[key{int64(w.rank), w.launches[i].correlation}] = &w.launches[i]
		}
	}
	ran := map[*launchCall]bool{}
	add := func(e *profile.Event, shape profile.LaunchShape) {
		if l := of[key{int64(e.Rank), e.Correlation}]; l != nil {
			l.Name, l.Shape, ran[l] = e.Name, shape, true
		}
	}
	for k := range s.Kernels {
		if !k.Graph {
			add(&k.Event, k.Shape)
		}
	}
	for c := range s.Copies {
		add(&c.Event, profile.LaunchShape{})
	}
	for _, w := range r.windows {
		kept := w.launches[:0]
		for i := range w.launches {
			if ran[&w.launches[i]] {
				kept = append(kept, w.launches[i])
			}
		}
		w.launches = kept
	}
}

// choosePasses finds passes for the replays without a capture, and reports whether it found any.
func (c *chooser) choosePasses() (any bool) {
	var without []*Launch
	for _, s := range c.Streams {
		for i := range s.Launches {
			if l := &s.Launches[i]; l.Capture == nil {
				without = append(without, l)
			}
		}
	}
	if len(without) == 0 {
		return false
	}
	passes := passesOf(c.set)
	if apart := c.set.Captures; apart != nil {
		list := passesOf(&apart.Set)
		for _, x := range list {
			x.translate(apart.Syms, c.set.Syms)
		}
		passes = append(passes, list...)
	}
	if len(passes) == 0 {
		return false
	}
	slices.SortStableFunc(passes, func(a, b *Capture) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Rank, b.Rank)) })
	c.describeAll(passes)
	sizes := &resizer{c.set.Syms, map[sized]*Capture{}, map[*Capture]bool{}}
	for _, l := range without {
		best, most := (*Capture)(nil), int64(0)
		for _, x := range ofRank(passes, c.set.Ranks[l.Rank]) {
			p := c.orderPairs(l, x)
			if p == nil {
				continue
			}
			if mapped := l.mapped(p); mapped > most {
				best, most, l.Pairs = x, mapped, p
			}
		}
		if best != nil {
			l.Capture, any = sizes.resized(best, l.Tokens, l.Batch), true
		}
	}
	return any
}

// mapped returns the total time of the nodes that have a launch, ns.
func (l *Launch) mapped(p *Pairs) (ns int64) {
	for i, at := range p.Launch {
		if at != none {
			ns += l.Nodes[i].Dur
		}
	}
	return ns
}

// orderPairs pairs a replay with a pass by the order of kinds; nil if they are of different models.
func (c *chooser) orderPairs(l *Launch, x *Capture) *Pairs {
	key := tried{l.Sequence, x}
	return order.Memo(c.known, key, func() *Pairs { return c.byOrder(x, c.seqs.first[l.Sequence].Nodes) })
}

// A line is the kinds of a sequence of kernels, without those kernels that only finish what the one
// before them began.
type line struct {
	at    []int32 // by kernel: its index in kinds
	first []int32 // by kind: the index of its first kernel
	kinds []kernelname.Kind
}

// lineOf makes a line of n kernels.
func (m *matcher) lineOf(n int, of func(i int) (name trace.Sym, w Work)) line {
	l := line{at: make([]int32, n)}
	for i := range n {
		name, work := of(i)
		kind := m.kind(name)
		switch work {
		case CopyWork:
			kind = kernelname.KindCopy
		case FillWork:
			kind = kernelname.KindFill
		}
		if last := len(l.kinds) - 1; last >= 0 && kind == l.kinds[last] && m.finishes(name, kind) {
			l.at[i] = int32(last)
			continue
		}
		l.at[i] = int32(len(l.kinds))
		l.kinds, l.first = append(l.kinds, kind), append(l.first, int32(i))
	}
	return l
}

// finishes reports whether a kernel combines parts that the one before it computed: of products, or of
// attention over long contexts.
func (m *matcher) finishes(name trace.Sym, kind kernelname.Kind) bool {
	if kind != kernelname.KindAttention && kind != kernelname.KindGEMM && kind != kernelname.KindExperts {
		return false
	}
	text := strings.ToLower(m.plain(name))
	return strings.Contains(text, "reduce") || strings.Contains(text, "combine") || strings.Contains(text, "merge_state")
}

// attentions returns how many times a line computes attention: once per layer.
func (l *line) attentions() (n int) {
	for i, kind := range l.kinds {
		if kind == kernelname.KindAttention && (i == 0 || l.kinds[i-1] != kernelname.KindAttention) {
			n++
		}
	}
	return n
}

// Scores of kernels of the same kind, and the cost of leaving one out. Where the graph and the pass of
// a model take different paths, they are paired in the order of all that they have in common.
const (
	sameKind   = 16
	sameStem   = 4
	sameKernel = 4
	orderGap   = 4
)

// byOrder pairs nodes with the launches of a pass; nil if that is of another model, such as one that
// drafts: a model computes attention as often with a graph as without, and most kernels must have a
// partner. Attention of prefills and of decode steps is different code: if its kernels have different
// names, only the module is known.
func (m *matcher) byOrder(x *Capture, nodes []Node) *Pairs {
	graph := m.lineOf(len(nodes), func(i int) (trace.Sym, Work) { return nodes[i].Name, nodes[i].Work })
	pass := m.lineOf(len(x.Launches), func(i int) (trace.Sym, Work) { return x.Launches[i].Name, x.Launches[i].Work })
	if n := graph.attentions(); n == 0 || n != pass.attentions() {
		return nil
	}
	a := newAlignment(len(graph.kinds), len(pass.kinds), orderGap)
	a.fill(func(i, j int) int32 {
		return m.sameOrder(graph.kinds[i], pass.kinds[j], nodes[graph.first[i]].Name, x.Launches[pass.first[j]].Name)
	})
	early, late := a.trace(true), a.trace(false)
	p := &Pairs{Launch: make([]int32, len(nodes)), By: make([]MatchBasis, len(nodes)), moduleOnly: make([]bool, len(nodes))}
	for i := range nodes {
		at := graph.at[i]
		e, l := early[at], late[at]
		p.Launch[i] = none
		switch {
		case e == none && l == none:
		case e == none || l == none || e != l && !x.says(pass.first[e], pass.first[l]):
			p.By[i] = ByAmbiguity
		default:
			p.Launch[i], p.By[i] = pass.first[e], ByOrder
			p.moduleOnly[i] = graph.kinds[at] == kernelname.KindAttention && m.stem(nodes[graph.first[at]].Name) != m.stem(x.Launches[pass.first[e]].Name)
		}
	}
	if p.count(x); 2*p.Missed > len(nodes) {
		return nil
	}
	return p
}

// sameOrder returns how well two kernels fit by their kinds. Names help where kinds leave a choice;
// kernels of unknown kind must have the same stem.
func (m *matcher) sameOrder(kind, other kernelname.Kind, name, otherName trace.Sym) int32 {
	if kind != other {
		return never
	}
	stem := m.stem(name) == m.stem(otherName)
	if kind == kernelname.KindOther && !stem {
		return never
	}
	score := int32(sameKind)
	if stem {
		score += sameStem
	}
	if m.sameName(name, otherName) {
		score += sameKernel
	}
	return score
}

// stem returns the name of a kernel without its template arguments.
func (m *matcher) stem(name trace.Sym) string {
	text, _, _ := strings.Cut(m.plain(name), "<")
	return text
}
