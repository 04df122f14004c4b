package rows

import "github.com/sgtrace/sgtrace/trace"

// A GraphRun is one run of a whole CUDA graph, whose kernels are not in the file ([Meta.GraphMode] "Graph"). 48
// bytes.
type GraphRun struct {
	Start, End trace.Time // both 0 if Timed is false
	Place
	Graph, Exec uint32 // ids of the graph and of its executable instance
	// Timed is false for a run without times from the GPU.
	Timed bool
}

const (
	runGraph = opColumns + iota
	runExec
)

var graphTable = tableSpec{
	names:   []string{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"},
	columns: operation(column{name: "graphId"}, column{name: "graphExecId"}),
}

// GraphRuns yields the runs of graphs.
func (w *Window) GraphRuns(yield func(*GraphRun) bool) {
	var g GraphRun
	w.scan(w.bounded(&graphTable), func(c *cursor) bool {
		g = GraphRun{Graph: uint32(c.int(runGraph)), Exec: uint32(c.int(runExec))}
		c.place(&g.Place)
		// CUPTI documents zeros as "not collected".
		if start, end := c.int(opStart), c.int(opEnd); start != 0 || end != 0 {
			g.Start, g.End, g.Timed = trace.Time(start+c.base), trace.Time(end+c.base), true
		}
		return yield(&g)
	})
}

// A GraphNode is the call that created a node of a CUDA graph, by capturing a stream or explicitly. 32 bytes.
type GraphNode struct {
	Start          trace.Time
	Node, Original uint64 // Original is the node that Node was cloned from; 0 is none
	PID, TID       int32
}

const (
	nodeStart = iota
	nodeEnd   // only for the bounds of the table
	nodeTID
	nodeID
	nodeOriginal
)

// nodeTable used to have the second name, which newer exports use for events of whole graphs; those lack the
// column of nodes.
var nodeTable = tableSpec{
	names: []string{"CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"},
	columns: []column{
		nodeStart:    {name: "start", need: true},
		nodeEnd:      {name: "end", or: "start"},
		nodeTID:      {name: "globalTid", none: noID},
		nodeID:       {name: "graphNodeId", need: true},
		nodeOriginal: {name: "originalGraphNodeId"},
	},
}

// GraphNodes yields the nodes of graphs.
func (s *Source) GraphNodes(yield func(*GraphNode) bool) {
	var g GraphNode
	s.scan(&nodeTable, func(c *cursor) bool {
		id := c.int(nodeTID)
		g = GraphNode{
			Start: c.time(nodeStart), PID: pidOf(id), TID: tidOf(id),
			Node: uint64(c.int(nodeID)), Original: uint64(c.int(nodeOriginal)),
		}
		return yield(&g)
	})
}

// SyncKind is a kind of synchronization. Numbers are those of CUPTI.
type SyncKind uint8

// A Sync is a wait of the host or of a stream. 48 bytes.
type Sync struct {
	Start, End trace.Time
	Place
	Event uint32 // CUDA event; 0 is none
	Kind  SyncKind
	// HasStream is false if the wait is not for a single stream.
	HasStream bool
}

const (
	syncKind = opColumns + iota
	syncEvent
)

var syncTable = tableSpec{
	names:   []string{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"},
	columns: operation(column{name: "syncType"}, column{name: "eventId"}),
}

// Syncs yields the waits.
func (s *Source) Syncs(yield func(*Sync) bool) {
	const noStream = 1<<32 - 1
	var w Sync
	s.scan(&syncTable, func(c *cursor) bool {
		w = Sync{
			Start: c.time(opStart), End: c.time(opEnd),
			Event: uint32(c.int(syncEvent)), Kind: SyncKind(c.int(syncKind)),
		}
		c.place(&w.Place)
		if w.HasStream = w.Stream != noStream && !c.null(opStream); !w.HasStream {
			w.Stream = 0
		}
		return yield(&w)
	})
}
