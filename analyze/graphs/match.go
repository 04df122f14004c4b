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

// MatchBasis says how a node is known to be of a launch. The order is from no proof to the best one.
type MatchBasis uint8

const (
	ByNothing    MatchBasis = iota
	ByAmbiguity             // several launches that say different things fit equally well
	ByOrder                 // it comes where a pass without a graph launched a kernel of the same kind
	ByPlace                 // nothing speaks against it, and both sides have as many
	ByRepeat                // elsewhere in the graph, kernels of its name are of the same operator
	ByKind                  // the operator computes what the name of the kernel says
	ByGrid                  // the grid and the block are the same
	ByName                  // the name is the same
	ByAnnotation            // the program said what the node is called
	ByNode                  // the recording tells which call made the node
)

var byNames = [...]string{"", "ambiguous", "order", "position", "repeat", "kind", "grid", "name", "annotation", "node"}

func (b MatchBasis) String() string { return byNames[b] }

// Pairs say which launch of a capture each node of a sequence is of.
type Pairs struct {
	Launch []int32 // none
	By     []MatchBasis
	// Missed are the nodes without a launch, and Extra the launches without a node.
	Missed, Extra int
	// moduleOnly tells, by node, that the launch is of the same module, but of another operator. It
	// is nil if none is.
	moduleOnly []bool
	proven     int // nodes whose name or grid is that of their launch
	clashes    int // nodes whose names say that they compute something else than their operators
}

// ModuleOnly reports whether only the module of a node's launch is its own.
func (p *Pairs) ModuleOnly(node int) bool { return p.moduleOnly != nil && p.moduleOnly[node] }

// A matcher pairs sequences with captures.
type matcher struct {
	syms  *trace.Symbols
	kinds *trace.PerName[kernelname.Kind] // of what names say that something computes
	names *trace.PerName[string]          // as they compare
	// around has the kinds of the operators around each launch, by capture.
	around map[*Capture][]kindSet
	// contested are kernels of which pairs say several operators: where launches are missing, place alone says nothing of them.
	contested map[trace.Sym]bool
	// operators are the innermost ones of the launches of all captures.
	operators map[trace.Sym]bool
	// repeats are the operators that kernels of a name are of wherever that is certain in what is paired.
	repeats map[trace.Sym]kernelOperator
}

// kernelOperator is the operator that all kernels of a name are of, with the shapes of its inputs.
type kernelOperator struct {
	operator trace.Sym
	shapes   trace.Sym // 0 is any
}

// fits reports whether a launch is of that.
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
	// vague are kinds that parts of any operator may be of.
	vague = setOf(kernelname.KindOther, kernelname.KindElementwise, kernelname.KindCopy, kernelname.KindFill, kernelname.KindReduction)
	// ofExperts are the kinds of the parts of a layer of experts.
	ofExperts = setOf(kernelname.KindExperts, kernelname.KindRouting, kernelname.KindSort)
	products  = setOf(kernelname.KindGEMM, kernelname.KindExperts)
)

// kindsAround returns what the operators around each launch of a capture compute.
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

// kind returns what a name says that something computes.
func (m *matcher) kind(name trace.Sym) kernelname.Kind { return m.kinds.Of(name) }

// sameName compares names that one profiler may write mangled, and another in full.
func (m *matcher) sameName(a, b trace.Sym) bool { return a == b || m.plain(a) == m.plain(b) }

func (m *matcher) plain(name trace.Sym) string { return m.names.Of(name) }

// Scores of pairs. A pair that proves itself is worth more than any number of pairs that merely
// do not contradict each other within the distance that sequences are shifted by.
const (
	never    = -1 << 20
	clash    = -8
	plain    = 4
	related  = 8
	kindred  = 16
	sameGrid = 32
	sameText = 64
)

// compare returns how well a node fits a launch, and what proves it; never is not at all.
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

// isOtherCompiled reports whether a kernel or an operator was compiled by Inductor, which calls an operator as the kernel that
// it launches, and the other one is of another name. Releases that have no such operators prove nothing.
func (m *matcher) isOtherCompiled(c *Capture, launch int, kernel trace.Sym) bool {
	operator := c.operatorName(launch)
	switch {
	case operator == kernel:
		return false
	case profile.IsCompiled(m.syms.Name(operator)):
		return !strings.HasPrefix(m.syms.Name(kernel), m.syms.Name(operator)+"_") // and types of arguments
	case profile.IsCompiled(m.syms.Name(kernel)):
		return m.operators[kernel]
	}
	return false
}

// kinship returns how well what the name of a node says fits the operators around a launch.
func (m *matcher) kinship(c *Capture, launch int, n *Node) (score int32, by MatchBasis) {
	kind, around := m.kind(n.Name), m.kindsAround(c)[launch]
	is := setOf(kind)
	repeated, repeats := m.repeats[n.Name]
	switch {
	case c.operatorName(launch) == n.Name: // Inductor calls an operator as the kernel that it compiled
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

// repeated returns the operators of kernels whose partners have the same one wherever they are certain: layers
// repeat.
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

// copyKind returns the kind of kernels that do what a copy or a fill asks for.
func copyKind(w Work) kernelname.Kind {
	if w == FillWork {
		return kernelname.KindFill
	}
	return kernelname.KindCopy
}

// pair aligns the nodes of a replay with the launches of a capture. Where that leaves some open and
// nothing is proven, it aligns them again with what the rest told about kernels and operators.
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

// count counts what has a partner.
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

// byPlace pairs as many nodes as launches by their place, if nothing speaks against it. Where streams
// run at once, only names tell the order.
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

// says reports whether two launches say the same of their nodes, and of all operators around.
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

// sure is by how much the best alignment must be better than any that says something else of a node.
const sure = kindred

// band is how many places an alignment looks around the diagonal, besides the difference in length.
const band = 96

// align pairs nodes with launches in the order of both, going around what one side lacks. Where
// another alignment is as good and gives a node a launch that says something else, it stays
// ambiguous.
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

// acrossStreams pairs the nodes that an alignment by time left over, since what streams run at once
// is in another order than at capture: by name, and in order along each stream.
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

// swappable finds nodes of one name that ran on two streams at once, whose launches may as well be the
// other way round.
func (m *matcher) swappable(p *Pairs, c *Capture, nodes []Node) {
	const near = 64 // nodes that run at once
	for i := range nodes {
		for k := i + 1; k < min(len(nodes), i+near); k++ {
			a, b := &nodes[i], &nodes[k]
			if b.Start >= a.Start+trace.Time(a.Dur) {
				break // streams have met between
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
