package spantable

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// None is the index of a span that is not there.
const None = -1

// A Tree has the relations between the spans of a finished [Table].
type Tree struct {
	dump *Table
	// parent of each span; None for roots and for spans whose parent is not in the dump.
	parent []int32
	// children of span i are child[first[i]:first[i+1]], in the order of [Tree.Sort].
	first, child []uint32
	duplicate    []uint64 // bit set
	// order has the spans by trace, then by ID, then in reading order. The spans of trace t are
	// order[begin[t]:begin[t+1]].
	order, begin []uint32
}

// NewTree indexes d, and renumbers its spans so that those of a trace are contiguous. The children of a
// span are unsorted until [Tree.Sort]. Spans that were exported twice are marked and reported: an exporter
// retries after a timeout even if the first attempt succeeded.
func NewTree(d *Table) *Tree {
	n := d.Len()
	t := &Tree{dump: d, parent: memory.Make[int32](n), duplicate: make([]uint64, (n+63)/64)}
	t.begin = d.groupTraces()
	t.sortTraces()
	t.findRepeated()
	parallel.Rows(n, spanSize, func(from, to int) {
		// Spans with a common parent are often adjacent.
		parent, last := int32(None), Identity{}
		for i := from; i < to; i++ {
			t.parent[i] = None
			if s := d.Identity(i); s.Parent != 0 && !t.Duplicate(i) {
				if s.Parent != last.Parent || s.Trace != last.Trace {
					parent, last = int32(t.find(s.Trace, s.Parent)), *s
				}
				t.parent[i] = parent
			}
		}
	})
	t.first = memory.Make[uint32](n + 2)
	t.breakCycles()
	t.groupChildren()
	return t
}

// Sort sorts the children of each span. compare must be safe for concurrent use.
func (t *Tree) Sort(compare func(i, j uint32) int) {
	parallel.Rows(t.dump.Len(), spanSize, func(from, to int) {
		for i := from; i < to; i++ {
			if c := t.Children(i); !slices.IsSortedFunc(c, compare) {
				slices.SortFunc(c, compare)
			}
		}
	})
}

// sortTraces fills order.
func (t *Tree) sortTraces() {
	d := t.dump
	t.order = memory.Make[uint32](d.Len())
	parallel.Rows(d.Traces(), traceSize, func(from, to int) {
		var keys []key
		for k := from; k < to; k++ {
			of, first := t.OfTrace(uint32(k)), t.begin[k]
			keys = memory.Grow(keys[:0], len(of))
			for at := range of {
				i := first + uint32(at)
				keys = append(keys, key{d.Identity(int(i)).ID, i})
			}
			slices.SortFunc(keys, compareKeys)
			for at, key := range keys {
				of[at] = key.span
			}
		}
	})
}

// A key is the sort key of spans in a trace.
type key struct {
	id   uint64
	span uint32
}

func compareKeys(a, b key) int {
	if a.id != b.id {
		return cmp.Compare(a.id, b.id)
	}
	return cmp.Compare(a.span, b.span)
}

// traceSize is roughly how many bytes of spans a trace has.
const traceSize = 32 * spanSize

// OfTrace returns the spans of a trace, by ID, then in reading order. It must not be modified.
func (t *Tree) OfTrace(number uint32) []uint32 { return t.order[t.begin[number]:t.begin[number+1]] }

// findRepeated marks duplicates, and reports other spans that share an ID.
func (t *Tree) findRepeated() {
	repeated := parallel.Gather(t.dump.Traces(), traceSize, func(repeated []uint32, from, to int) []uint32 {
		for k := from; k < to; k++ {
			of := t.OfTrace(uint32(k))
			for at := 1; at < len(of); at++ {
				if id := t.dump.Identity(int(of[at])).ID; id != 0 && id == t.dump.Identity(int(of[at-1])).ID {
					repeated = append(repeated, of[at])
				}
			}
		}
		return repeated
	})
	slices.Sort(repeated)
	type copies struct{ file, of uint32 }
	found := map[copies]int{}
	fileOf := func(i int) uint32 { return t.dump.Origins[t.dump.Span(i).Origin].File }
	again := make([]copies, len(repeated)) // the files of each duplicate and its original
	for k, at := range repeated {
		i := int(at)
		first := t.First(i)
		if x, y := t.dump.Span(i), t.dump.Span(first); x.Start == y.Start && x.End == y.End && x.Name == y.Name && x.Parent == y.Parent {
			t.duplicate[i/64] |= 1 << (i % 64)
			again[k] = copies{fileOf(i), fileOf(first)}
			found[again[k]]++
			continue
		}
		t.report(trace.OTLPIDCollision, i)
	}
	files, told := t.dump.Files, map[copies]bool{}
	for k, at := range repeated {
		i, c := int(at), again[k]
		switch {
		case !t.Duplicate(i) || told[c]:
		case c.file != c.of && found[c] == files[c.file].Spans:
			told[c] = true
			t.dump.Diags.Add(trace.OTLPGivenTwice.Of(files[c.file].Name, files[c.file].Spans, files[c.of].Name))
		default:
			t.report(trace.OTLPDuplicateSpan, i)
		}
	}
}

func (t *Tree) report(m *trace.Message, i int) {
	span := t.dump.Span(i)
	t.dump.Diags.Add(m.At(t.dump.Pos(i), span.ID, t.dump.Syms.Name(span.Name)))
}

// Release releases everything that only the tree uses: see [Tree.Lists].
func (t *Tree) Release() {
	memory.Free(t.order)
	*t = Tree{}
}

// Lists returns the columns of the tree: the parent of each span, or None, and below, which has the
// children of span i from first[i] to first[i+1]. They must not be modified.
func (t *Tree) Lists() (parent []int32, first, below []uint32) { return t.parent, t.first, t.child }

// Find returns the index of a span, or None.
func (t *Tree) Find(hi, lo, id uint64) int {
	n, ok := t.dump.traces.numbers[TraceID{hi, lo}]
	if !ok {
		return None
	}
	return t.find(n, id)
}

// Linked yields the spans that the links of span i name, in order; None for those not in the dump.
func (t *Tree) Linked(i int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		_, links := t.dump.extent(i)
		for n := links.from; n < links.to; n++ {
			l := t.dump.links.At(n)
			if !yield(int32(t.find(l.trace(), l.id()))) {
				return
			}
		}
	}
}

// find returns the first span with an ID in a trace, or None.
func (t *Tree) find(trace uint32, id uint64) int {
	of := t.OfTrace(trace)
	at, found := slices.BinarySearchFunc(of, id, func(i uint32, id uint64) int { return cmp.Compare(t.dump.Identity(int(i)).ID, id) })
	if !found {
		return None
	}
	return int(of[at])
}

// Parent returns the parent of span i, or None.
func (t *Tree) Parent(i int) int { return int(t.parent[i]) }

// Orphan reports whether span i names a parent that is not in the dump.
func (t *Tree) Orphan(i int) bool {
	s := t.dump.Identity(i)
	return t.parent[i] == None && s.Parent != 0 && !t.Duplicate(i) && t.find(s.Trace, s.Parent) == None
}

// Duplicate reports whether span i repeats an earlier one.
func (t *Tree) Duplicate(i int) bool { return t.duplicate[i/64]&(1<<(i%64)) != 0 }

// First returns the span that span i repeats, or i itself.
func (t *Tree) First(i int) int {
	id := t.dump.Identity(i)
	return t.find(id.Trace, id.ID)
}

// Children returns the children of span i, in the order of [Tree.Sort]. It must not be modified.
func (t *Tree) Children(i int) []uint32 { return t.child[t.first[i]:t.first[i+1]] }

// breakCycles turns one span of every cycle of parents into a root. Only forged or colliding IDs can form
// cycles. A span that is its own parent is a cycle, too.
func (t *Tree) breakCycles() {
	if !t.hasCycles() {
		return
	}
	walk := t.first // temporarily, the last walk that reached a span
	for i := range t.dump.Numbers() {
		number := uint32(i + 1)
		for j := int32(i); j != None && (walk[j] == 0 || walk[j] == number); j = t.parent[j] {
			if walk[j] == number {
				t.report(trace.OTLPCycle, int(j))
				t.parent[j] = None
				break
			}
			walk[j] = number
		}
	}
	clear(walk)
}

// hasCycles reports whether any span is below itself. A cycle is always within one trace.
func (t *Tree) hasCycles() bool {
	walk := t.first // temporarily, the last walk that reached a span
	var found atomic.Bool
	parallel.Rows(t.dump.Traces(), traceSize, func(from, to int) {
		for _, i := range t.order[t.begin[from]:t.begin[to]] {
			number := i + 1
			j := int32(i)
			for ; j != None && walk[j] == 0; j = t.parent[j] {
				walk[j] = number
			}
			if j != None && walk[j] == number {
				found.Store(true)
			}
		}
	})
	clear(walk)
	return found.Load()
}

// groupChildren fills child, in parallel for ranges of traces: the spans of a range are contiguous, and
// include their parents.
func (t *Tree) groupChildren() {
	type part struct{ begin, end, children uint32 }
	parts := parallel.Gather(t.dump.Traces(), traceSize, func(list []part, from, to int) []part {
		p := part{begin: t.begin[from], end: t.begin[to]}
		for _, parent := range t.parent[p.begin:p.end] {
			if parent != None {
				t.first[parent+2]++
				p.children++
			}
		}
		return append(list, p)
	})
	total := uint32(0)
	for i := range parts {
		total, parts[i].children = total+parts[i].children, total // from here on, the number before the part
	}
	t.child = memory.Make[uint32](int(total))
	parallel.Each(len(parts), func(i int) {
		p := parts[i]
		if p.begin == p.end {
			return
		}
		next := t.first[p.begin+1 : p.end+1] // by span, the position of its next child
		next[0] = p.children
		for k := range len(next) - 1 {
			next[k+1] += next[k]
		}
		for at, parent := range t.parent[p.begin:p.end] {
			if parent != None {
				to := &next[uint32(parent)-p.begin]
				t.child[*to] = p.begin + uint32(at)
				*to++
			}
		}
	})
	t.first = t.first[:len(t.parent)+1]
}

// CompareIDs orders spans by identity, which does not depend on their positions in the input.
func (t *Tree) CompareIDs(a, b int) int {
	x, y := t.dump.TraceOf(a), t.dump.TraceOf(b)
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(t.dump.Identity(a).ID, t.dump.Identity(b).ID))
}
