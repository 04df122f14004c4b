package graphs

import (
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// MatchBasis says how it is known which launch a node is, from no proof to the best.
type MatchBasis uint8

const (
	ByNothing    MatchBasis = iota
	ByAmbiguity             // several launches that say different things fit equally well
	ByOrder                 // in that place of the order, a pass without a graph launched a kernel of the same kind
	ByPlace                 // nothing contradicts it, and both sides have equally many
	ByRepeat                // kernels of its name have the same operator elsewhere in the graph
	ByKind                  // the operator computes what the name of the kernel says
	ByGrid                  // the grid and the block are the same
	ByName                  // the name is the same
	ByAnnotation            // the program named the node
	ByNode                  // the recording shows which call made the node
)

var byNames = [...]string{"", "ambiguous", "order", "position", "repeat", "kind", "grid", "name", "annotation", "node"}

func (b MatchBasis) String() string { return byNames[b] }

// Pairs say which launch of a capture each node of a sequence is.
type Pairs struct {
	Launch []int32 // none
	By     []MatchBasis
	// Missed are the nodes without a launch, and Extra the launches without a node.
	Missed, Extra int
	// moduleOnly marks nodes whose launch has the same module, but a different operator. It is nil if
	// there are none.
	moduleOnly []bool
	proven     int // nodes with the name or grid of their launch
	clashes    int // nodes whose names say that they compute something other than their operators
}

// ModuleOnly reports whether only the module of a node's launch applies to the node.
func (p *Pairs) ModuleOnly(node int) bool { return p.moduleOnly != nil && p.moduleOnly[node] }

// A matcher pairs sequences with captures.
type matcher struct {
	syms  *trace.Symbols
	kinds *trace.PerName[kernelname.Kind] // what something computes, by name
	names *trace.PerName[string]          // in the form in which they are compared
	// around has the kinds of the operators around each launch, by capture.
	around map[*Capture][]kindSet
	// contested are kernels for which pairs have several operators: where launches are missing, place alone says nothing about them.
	contested map[trace.Sym]bool
	// operators are the innermost operators of the launches of all captures.
	operators map[trace.Sym]bool
	// repeats are the operators of kernels, by name, if all certain pairs of that name agree.
	repeats map[trace.Sym]kernelOperator
}

// A kernelOperator is the operator of all kernels of a name, with the shapes of its inputs.
type kernelOperator struct {
	operator trace.Sym
	shapes   trace.Sym // 0 is any
}

// fits reports whether a launch has that operator.
func (s kernelOperator) fits(c *Capture, launch int) bool {
	at := c.operator(int32(launch))
	return at != none && c.Frames[at].Name == s.operator && (s.shapes == 0 || c.Frames[at].Shapes == s.shapes)
}

func newMatcher(syms *trace.Symbols) *matcher {
	return &matcher{syms: syms, kinds: trace.EachName(syms, kernelname.KindOf), names: trace.EachName(syms, kernelname.Demangle), around: map[*Capture][]kindSet{}, operators: map[trace.Sym]bool{}}
}

// A kindSet is a set of kinds, a bit each.
type kindSet uint32

func setOf(kinds ...kernelname.Kind) (s kindSet) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

var (
	// vague are kinds that parts of any operator may have.
	vague = setOf(kernelname.KindOther, kernelname.KindElementwise, kernelname.KindCopy, kernelname.KindFill, kernelname.KindReduction)
	// ofExperts are the kinds of the parts of a layer of experts.
	ofExperts = setOf(kernelname.KindExperts, kernelname.KindRouting, kernelname.KindSort)
	products  = setOf(kernelname.KindGEMM, kernelname.KindExperts)
)

// kindsAround returns the kinds of the operators around each launch of a capture.
func (m *matcher) kindsAround(c *Capture) []kindSet {
	return order.Memo(m.around, c, func() []kindSet {
		list := make([]kindSet, len(c.Launches))
		for i := range list {
			for at := c.operator(int32(i)); at != none; at = c.innermost(c.Frames[at].Around) {
				list[i] |= setOf(m.kind(c.Frames[at].Name))
			}
		}
		return list
	})
}

// kind returns what a kernel or operator computes, by its name.
func (m *matcher) kind(name trace.Sym) kernelname.Kind { return m.kinds.Of(name) }

// sameName compares names, which one profiler may write mangled, and another in full.
func (m *matcher) sameName(a, b trace.Sym) bool { return a == b || m.plain(a) == m.plain(b) }

func (m *matcher) plain(name trace.Sym) string { return m.names.Of(name) }

// Scores of pairs. A pair that proves itself is worth more than any number of pairs that merely do not
// contradict each other, within the distance by which sequences are shifted.
const (
	never    = -1 << 20
	clash    = -8
	plain    = 4
	related  = 8
	kindred  = 16
	sameGrid = 32
	sameText = 64
)

// compare returns how well a node fits a launch, and what proves it; never if it does not fit.
func (m *matcher) compare(c *Capture, launch int, n *Node) (score int32, by MatchBasis) {
	l := &c.Launches[launch]
	score, by = plain, ByPlace
	if l.Name != 0 && n.Work == KernelWork {
		if l.Work != KernelWork || !m.sameName(l.Name, n.Name) {
			return never, ByNothing
		}
		score, by = sameText, ByName
	}
	switch {
	case l.Work == n.Work:
	case n.Work == KernelWork && m.kind(n.Name) == copyKind(l.Work): // ROCm copies and fills by kernels
	default:
		return never, ByNothing
	}
	if l.Shape.Blocks > 0 && n.Shape.Blocks > 0 && l.Shape.Threads > 0 && n.Shape.Threads > 0 {
		if l.Shape.Blocks != n.Shape.Blocks || l.Shape.Threads != n.Shape.Threads {
			return never, ByNothing
		}
		score, by = score+sameGrid, max(by, ByGrid)
	}
	if by == ByPlace && n.Work == KernelWork {
		if m.isOtherCompiled(c, launch, n.Name) {
			return never, ByNothing
		}
		var kin int32
		kin, by = m.kinship(c, launch, n)
		score += kin
	}
	return score, by
}

// isOtherCompiled reports whether Inductor compiled the kernel or the operator of a pair, and their names differ:
// it names an operator after the kernel that it launches. Releases that have no such operators prove nothing.
func (m *matcher) isOtherCompiled(c *Capture, launch int, kernel trace.Sym) bool {
	operator := c.operatorName(launch)
	switch {
	case operator == kernel:
		return false
	case profile.IsCompiled(m.syms.Name(operator)):
		return !strings.HasPrefix(m.syms.Name(kernel), m.syms.Name(operator)+"_") // types of arguments follow
	case profile.IsCompiled(m.syms.Name(kernel)):
		return m.operators[kernel]
	}
	return false
}

// kinship returns how well the name of a node fits the operators around a launch.
func (m *matcher) kinship(c *Capture, launch int, n *Node) (score int32, by MatchBasis) {
	kind, around := m.kind(n.Name), m.kindsAround(c)[launch]
	is := setOf(kind)
	repeated, repeats := m.repeats[n.Name]
	switch {
	case c.operatorName(launch) == n.Name: // Inductor names an operator after the kernel that it compiled
		return kindred + related, ByKind
	case repeats && repeated.fits(c, launch):
		return kindred + related, ByRepeat
	case repeats:
		return clash, ByPlace
	case kind != kernelname.KindOther && around&is != 0:
		return kindred, ByKind
	case is&ofExperts != 0 && around&ofExperts != 0, is&products != 0 && around&products != 0:
		return related, ByPlace
	case is&vague == 0 && around&^vague != 0:
		return clash, ByPlace
	}
	return 0, ByPlace
}

// operatorName returns the innermost operator of a launch; 0 is none.
func (c *Capture) operatorName(launch int) trace.Sym {
	if at := c.operator(int32(launch)); at != none {
		return c.Frames[at].Name
	}
	return 0
}

// repeated returns the operators of kernels, by name, whose certain partners all have the same one:
// layers repeat.
func (p *Pairs) repeated(c *Capture, nodes []Node) map[trace.Sym]kernelOperator {
	const least = 3
	count, found, several := map[trace.Sym]int{}, map[trace.Sym]kernelOperator{}, map[trace.Sym]bool{}
	for i, at := range p.Launch {
		if at == none || nodes[i].Work != KernelWork {
			continue
		}
		name, operator := nodes[i].Name, c.operatorName(int(at))
		if known, ok := found[name]; ok && known.operator != operator {
			several[name] = true
		}
		found[name] = kernelOperator{operator: operator}
		count[name]++
	}
	maps.DeleteFunc(found, func(name trace.Sym, s kernelOperator) bool {
		return several[name] || s.operator == 0 || count[name] < least
	})
	return found
}

// copyKind returns the kind of the kernels that copy or fill.
func copyKind(w Work) kernelname.Kind {
	if w == FillWork {
		return kernelname.KindFill
	}
	return kernelname.KindCopy
}

// pair aligns the nodes of a replay with the launches of a capture. If some stay ambiguous and nothing
// is proven, it aligns them again with what the certain pairs say about kernels and operators.
func (m *matcher) pair(c *Capture, nodes []Node) *Pairs {
	p := &Pairs{Launch: make([]int32, len(nodes)), By: make([]MatchBasis, len(nodes))}
	m.align(p, c, nodes)
	if m.repeats == nil && slices.Contains(p.By, ByAmbiguity) && !slices.Contains(p.By, ByName) && !slices.Contains(p.By, ByGrid) {
		m.repeats = p.repeated(c, nodes)
		m.align(p, c, nodes)
		m.repeats = nil
	}
	if !oneStream(nodes) {
		m.acrossStreams(p, c, nodes)
	}
	p.count(c)
	return p
}

// pair notes the launch of a node.
func (p *Pairs) pair(node int, launch, score int32, by MatchBasis) {
	p.Launch[node], p.By[node] = launch, by
	if score < 0 {
		p.clashes++
	}
}

// count counts nodes and launches without a partner, and pairs that are proven.
func (p *Pairs) count(c *Capture) {
	for i, at := range p.Launch {
		if at == none {
			p.Missed++
		}
		if p.By[i] >= ByGrid {
			p.proven++
		}
	}
	p.Extra = len(c.Launches) - (len(p.Launch) - p.Missed)
}

func oneStream(nodes []Node) bool {
	return !slices.ContainsFunc(nodes, func(n Node) bool { return n.Stream != nodes[0].Stream || n.Device != nodes[0].Device })
}

// byPlace pairs nodes with launches by place if there are equally many and nothing contradicts it.
// Where streams run at the same time, only names, grids, or numbers of nodes show the order.
func (m *matcher) byPlace(p *Pairs, c *Capture, nodes []Node) bool {
	if len(nodes) != len(c.Launches) {
		return false
	}
	one := oneStream(nodes)
	for i := range nodes {
		score, by := m.compare(c, i, &nodes[i])
		if score == never || !one && nodes[i].number == 0 && by < ByGrid {
			return false
		}
		if by == ByKind {
			by = ByPlace
		}
		p.pair(i, int32(i), score, by)
	}
	return true
}

// says reports whether two launches say the same about their nodes, and about all operators around them.
func (c *Capture) says(a, b int32) bool {
	if c.places[a] != c.places[b] {
		return false
	}
	x, y := c.operator(a), c.operator(b)
	for x != y {
		if x == none || y == none || c.Frames[x].Name != c.Frames[y].Name || c.Frames[x].Shapes != c.Frames[y].Shapes {
			return false
		}
		x, y = c.innermost(c.Frames[x].Around), c.innermost(c.Frames[y].Around)
	}
	return true
}

// sure is how much better the best alignment must be than any that says something else about a node.
const sure = kindred

// band is how far from the diagonal an alignment looks, in places, besides the difference in length.
const band = 96

// align pairs nodes with launches in the order of both, and skips what one side lacks. A node stays
// ambiguous if another alignment is as good, and gives it a launch that says something else.
func (m *matcher) align(p *Pairs, c *Capture, nodes []Node) {
	a := newAlignment(len(nodes), len(c.Launches), gap)
	a.fill(func(i, j int) int32 {
		score, _ := m.compare(c, j, &nodes[i])
		return score
	})
	early, late := a.trace(true), a.trace(false)
	margins := a.margins(early, c.says)
	p.clashes = 0
	lacks := len(nodes) != len(c.Launches) || slices.Contains(early, none)
	for i := range nodes {
		p.Launch[i], p.By[i] = early[i], ByNothing
		if early[i] == none {
			continue
		}
		score, by := m.compare(c, int(early[i]), &nodes[i])
		if late[i] == none || early[i] != late[i] && !c.says(early[i], late[i]) || by < ByGrid && margins[i] < sure || score < 0 || by == ByPlace && lacks && m.contested[nodes[i].Name] {
			p.Launch[i], p.By[i] = none, ByAmbiguity
			if score < 0 {
				p.clashes++
			}
			continue
		}
		p.pair(i, early[i], score, by)
	}
	for i := range nodes {
		if early[i] == none && late[i] != none {
			p.By[i] = ByAmbiguity
		}
	}
}

// acrossStreams pairs the nodes that an alignment by time left over, as streams that run at the same
// time have a different order than at capture: by name, and in order along each stream.
func (m *matcher) acrossStreams(p *Pairs, c *Capture, nodes []Node) {
	free := map[string][]int32{} // launches by name
	used := make([]bool, len(c.Launches))
	for _, at := range p.Launch {
		if at != none {
			used[at] = true
		}
	}
	for j := range c.Launches {
		if l := &c.Launches[j]; !used[j] && l.Name != 0 {
			free[m.plain(l.Name)] = append(free[m.plain(l.Name)], int32(j))
		}
	}
	type key struct {
		device int32
		stream uint32
	}
	last := map[key]int32{} // launch of the node before, along a stream
	for i := range nodes {
		n := &nodes[i]
		k := key{n.Device, n.Stream}
		before, ok := last[k]
		if !ok {
			before = none
		}
		if p.Launch[i] == none && n.Work == KernelWork {
			list := free[m.plain(n.Name)]
			at := slices.IndexFunc(list, func(j int32) bool { return j > before })
			if at >= 0 && m.fits(c, int(list[at]), n) {
				p.Launch[i], p.By[i] = list[at], ByName
				free[m.plain(n.Name)] = slices.Delete(list, at, at+1)
			}
		}
		if p.Launch[i] != none {
			last[k] = p.Launch[i]
		}
	}
	m.swappable(p, c, nodes)
}

func (m *matcher) fits(c *Capture, launch int, n *Node) bool {
	score, _ := m.compare(c, launch, n)
	return score != never
}

// swappable finds nodes of one name that ran on two streams at the same time, and whose launches may
// just as well be swapped. They become ambiguous.
func (m *matcher) swappable(p *Pairs, c *Capture, nodes []Node) {
	const near = 64 // nodes that may run at once
	for i := range nodes {
		for k := i + 1; k < min(len(nodes), i+near); k++ {
			a, b := &nodes[i], &nodes[k]
			if b.Start >= a.Start+trace.Time(a.Dur) {
				break // it began after the first one had ended
			}
			if a.Stream == b.Stream || p.Launch[i] == none || p.Launch[k] == none || !m.sameName(a.Name, b.Name) || c.says(p.Launch[i], p.Launch[k]) {
				continue
			}
			for _, at := range []int{i, k} {
				p.Launch[at], p.By[at] = none, ByAmbiguity
			}
		}
	}
}
