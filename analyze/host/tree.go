package host

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// Of is whose time a stack has.
type Of uint8

const (
	CPU Of = iota // threads
	GPU           // kernels, copies and fills that the stack launched
	numOf
)

// A node is a stack: a frame, and the stack that it is entered from.
type node struct {
	around int32
	name   trace.Sym
	did    Did // what a thread does in the frame; OnDevice of work of devices
}

// isIdle reports whether a stack ends in the frame that stands for waiting.
func (n *node) isIdle() bool { return n.did.Waits() && n.name == 0 }

// bottom is the stack without frames.
const bottom = 0

// mostDepth bounds stacks: Python's functions nest up to 1,000 deep, and those of real servers
// a tenth of that. What is deeper counts where it begins.
const mostDepth = 500

// A tree holds stacks, and the time in the innermost frame of each, ns.
type tree struct {
	nodes []node // each after the one around it
	depth []int32
	self  [numOf][]int64
	index map[node]int32
}

func newTree() *tree {
	t := &tree{nodes: []node{{around: -1}}, depth: []int32{0}, index: map[node]int32{}}
	for of := range t.self {
		t.self[of] = []int64{0}
	}
	return t
}

// enter returns the stack in a frame that is entered from another one.
func (t *tree) enter(around int32, name trace.Sym, did Did) int32 {
	key := node{around, name, did}
	at, ok := t.index[key]
	if !ok {
		at = int32(len(t.nodes))
		t.index[key] = at
		t.nodes = append(t.nodes, key)
		t.depth = append(t.depth, t.depth[around]+1)
		for of := range t.self {
			t.self[of] = append(t.self[of], 0)
		}
	}
	return at
}

// add adds time to a stack.
func (t *tree) add(of Of, at int32, ns int64) {
	t.self[of][at] = distribution.AddTimes(t.self[of][at], ns)
}

// merge adds all of another tree.
func (t *tree) merge(o *tree) {
	to := make([]int32, len(o.nodes))
	for i := 1; i < len(o.nodes); i++ {
		n := &o.nodes[i]
		to[i] = t.enter(to[n.around], n.name, n.did)
		for of := range o.self {
			t.add(Of(of), to[i], o.self[of][i])
		}
	}
}

// totals returns the time in every stack and in those that go on from it, without the time
// that threads waited in these.
func (t *tree) totals(of Of) []int64 {
	sums := make([]int64, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		sums[i] = distribution.AddTimes(sums[i], t.self[of][i])
		if n := &t.nodes[i]; i != bottom && !n.isIdle() {
			sums[n.around] = distribution.AddTimes(sums[n.around], sums[i])
		}
	}
	return sums
}
