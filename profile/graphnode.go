package profile

import "iter"

// A GraphNode is a node of a CUDA graph, and the call that made it, which begins at Start.
type GraphNode struct {
	Event
	TID int64
	// Node is its number, as [Kernel.Node] has it. Original is that of the node that it was copied from
	// when a graph was made executable; 0 is none.
	Node, Original int64
}

// GraphNodes yields the nodes of graphs that were made while a stream was recorded, in no certain
// order. Only exports of Nsight Systems have them.
func GraphNodes(s Stream) iter.Seq[*GraphNode] {
	return func(yield func(*GraphNode) bool) {
		if n, ok := s.(interface {
			GraphNodes(yield func(*GraphNode) bool)
		}); ok {
			n.GraphNodes(yield)
		}
	}
}

// NodeRanges yields the ranges of a stream that threads may have been in while they made nodes of graphs.
func NodeRanges(s Stream) iter.Seq[*Range] {
	if n, ok := s.(interface {
		NodeRanges(yield func(*Range) bool)
	}); ok {
		return n.NodeRanges
	}
	return s.Ranges
}
