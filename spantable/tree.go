package spantable

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// None is the index of a span that is not there.
const None = -1

// A Tree relates the spans of a finished [Table] to each other.
type Tree struct {
	dump *Table
	// parent of each span; None for roots and for spans whose parent is not in
	// the dump.
	parent []int32
	// children of span i are child[first[i]:first[i+1]], ordered by start,
	// then longest first, then id.
	first, child []uint32
	duplicate    []uint64 // bit set
	slots        []uint32 // open addressing: 1 + span index, 0 is free
}

// NewTree indexes d. Spans that were exported twice are marked and reported:
// an exporter retries after a timeout although the first try went through.
func NewTree(d *Table) *Tree {
	n := d.Len()
	t := &Tree{dump: d, parent: memory.Make[int32](n), duplicate: make([]uint64, (n+63)/64)}
	t.index()
	for i := range n {
		t.parent[i] = None
		if s := d.Span(i); s.Parent != 0 && !t.Duplicate(i) {
			t.parent[i] = int32(t.Find(s.TraceHi, s.TraceLo, s.Parent))
		}
	}
	t.breakCycles()
	t.groupChildren()
	return t
}

// index fills the hash table and marks duplicates.
func (t *Tree) index() {
	size := 16
	for size < 2*t.dump.Len() {
		size *= 2
	}
	t.slots = memory.Make[uint32](size)
	for i := range t.dump.Len() {
		s := t.dump.Span(i)
		slot := t.slot(s.TraceHi, s.TraceLo, s.ID)
		if t.slots[slot] == 0 {
			t.slots[slot] = uint32(i + 1)
			continue
		}
		first := t.dump.Span(int(t.slots[slot] - 1))
		if s.ID == 0 {
			continue
		}
		if s.Start == first.Start && s.End == first.End && s.Name == first.Name && s.Parent == first.Parent {
			t.duplicate[i/64] |= 1 << (i % 64)
			t.report(trace.OTLPDuplicateSpan, i)
			continue
		}
		t.report(trace.OTLPIDCollision, i)
	}
}

func (t *Tree) report(m *trace.Message, i int) {
	span := t.dump.Span(i)
	t.dump.Diags.Add(m.At(t.dump.Pos(i), span.ID, t.dump.Syms.Name(span.Name)))
}

// slot returns where the span with the given identity is, or would be.
func (t *Tree) slot(hi, lo, id uint64) int {
	mask := len(t.slots) - 1
	h := (id ^ lo*0x9e3779b97f4a7c15 ^ hi*0xc2b2ae3d27d4eb4f) * 0x9e3779b97f4a7c15
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		if t.slots[i] == 0 {
			return i
		}
		if s := t.dump.Span(int(t.slots[i] - 1)); s.ID == id && s.TraceLo == lo && s.TraceHi == hi {
			return i
		}
	}
}

// Lists returns the columns of the tree: the parent of each span, or None, and below,
// which holds the children of span i from first[i] up to first[i+1]. They must not be
// modified.
func (t *Tree) Lists() (parent []int32, first, below []uint32) { return t.parent, t.first, t.child }

// Find returns the index of a span, or None.
func (t *Tree) Find(hi, lo, id uint64) int { return int(t.slots[t.slot(hi, lo, id)]) - 1 }

// Parent returns the parent of span i, or None.
func (t *Tree) Parent(i int) int { return int(t.parent[i]) }

// Orphan reports whether span i names a parent that is not in the dump.
func (t *Tree) Orphan(i int) bool {
	s := t.dump.Span(i)
	return t.parent[i] == None && s.Parent != 0 && !t.Duplicate(i) && t.Find(s.TraceHi, s.TraceLo, s.Parent) == None
}

// Duplicate reports whether span i repeats an earlier one.
func (t *Tree) Duplicate(i int) bool { return t.duplicate[i/64]&(1<<(i%64)) != 0 }

// Children returns the children of span i, ordered by start, then longest
// first. It must not be modified.
func (t *Tree) Children(i int) []uint32 { return t.child[t.first[i]:t.first[i+1]] }

// breakCycles makes a root of one span of every cycle of parents, which only
// forged or colliding ids can form. A span that is its own parent is one, too.
func (t *Tree) breakCycles() {
	walk := memory.Make[int32](len(t.parent)) // the walk that last saw a span
	for i := range t.parent {
		number := int32(i + 1)
		for j := int32(i); j != None && (walk[j] == 0 || walk[j] == number); j = t.parent[j] {
			if walk[j] == number {
				t.report(trace.OTLPCycle, int(j))
				t.parent[j] = None
				break
			}
			walk[j] = number
		}
	}
}

func (t *Tree) groupChildren() {
	n := len(t.parent)
	t.first = memory.Make[uint32](n + 2)
	total := uint32(0)
	for _, p := range t.parent {
		if p != None {
			t.first[p+2]++
			total++
		}
	}
	for i := 2; i < len(t.first); i++ {
		t.first[i] += t.first[i-1]
	}
	t.child = memory.Make[uint32](int(total))
	for i, p := range t.parent {
		if p != None {
			t.child[t.first[p+1]] = uint32(i)
			t.first[p+1]++
		}
	}
	t.first = t.first[:n+1]
	for i := range n {
		if c := t.Children(i); !slices.IsSortedFunc(c, t.byStart) {
			slices.SortFunc(c, t.byStart)
		}
	}
}

func (t *Tree) byStart(a, b uint32) int { return t.Compare(int(a), int(b)) }

// Compare orders spans by start, then longest first, then identity: an order
// that does not depend on where they stand in the input.
func (t *Tree) Compare(a, b int) int {
	x, y := t.dump.Span(a), t.dump.Span(b)
	return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End),
		cmp.Compare(x.TraceHi, y.TraceHi), cmp.Compare(x.TraceLo, y.TraceLo), cmp.Compare(x.ID, y.ID))
}
